// A Pi extension: history_search, history_read and history_handoff for the conversation that Pi is in.
//
//     cp examples/pi-recall.js ~/.pi/agent/extensions/        (session-history must be on the PATH)
//
// Searching and reading run `session-history tools NAME JSON` for the session that Pi names. A handoff is applied as a
// compaction whose summary is the text that the model wrote, beside the newest entries that Pi keeps anyway.

const COMMAND = process.env.SESSION_HISTORY_COMMAND ?? "session-history";

export default async function (pi) {
	const definitions = JSON.parse((await pi.exec(COMMAND, ["tools"])).stdout);
	let handoff;

	async function recall(name, params, signal, ctx) {
		const folder = ctx.sessionManager.getSessionDir();
		const words = ["--json", "--root", folder, "--current", ctx.sessionManager.getSessionId()];
		const done = await pi.exec(COMMAND, [...words, "tools", name, JSON.stringify(params)], { signal });
		const answer = JSON.parse(done.stdout);
		if (answer.error) throw new Error(`${answer.error.code}: ${answer.error.message} (${answer.error.hint})`);
		return { content: [{ type: "text", text: answer.text }], details: answer.result };
	}

	async function handOff(params, ctx) {
		if (!params.text?.trim()) throw new Error("invalid_request: text is blank");
		handoff = params.text;
		return { content: [{ type: "text", text: "Handing off." }], details: {}, terminate: true };
	}

	for (const { name, description, input_schema } of definitions) {
		pi.registerTool({
			name,
			label: name.replace("_", " "),
			description,
			parameters: input_schema,
			execute: (_id, params, signal, _onUpdate, ctx) =>
				name === "history_handoff" ? handOff(params, ctx) : recall(name, params, signal, ctx),
		});
	}

	// The model has stopped after handing off: compact now, then let it go on with what it wrote down.
	pi.on("agent_settled", (_event, ctx) => {
		if (handoff === undefined) return;
		ctx.compact({ onComplete: () => pi.sendUserMessage("Go on as handed off."), onError: () => (handoff = undefined) });
	});

	pi.on("session_before_compact", (event) => {
		if (handoff === undefined) return;
		const summary = handoff;
		handoff = undefined;
		const { firstKeptEntryId, tokensBefore } = event.preparation;
		return { compaction: { summary, firstKeptEntryId, tokensBefore } };
	});
}
