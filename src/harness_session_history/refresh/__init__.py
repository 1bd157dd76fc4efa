"""Files become index rows, in transactions that leave a whole snapshot."""
