import ReelCheck
import ReelCore
import ReelNet
import ReelNode

extension Command {
    /// `reel digest`: a comparison of the state of a stream on several nodes.
    static let digest = Command(
        "digest",
        "compare the digests of a stream's state on several nodes, and check them against the snapshots",
        about: """
            Asks every named node for a snapshot of the stream. A snapshot node answers with its own snapshot, a gateway
            with that of one of the snapshot nodes, in turn. The exit code is 1 if the digest of a snapshot differs from
            the one computed from its lines, or two snapshots of one seq differ. Otherwise it is 3 if a node did not
            answer.
            """,
        operands: [Operand("STREAM")],
        settings: NodeArguments.all + [CommonSettings.json],
        examples: [
            Example(
                "reel digest todo --url http://127.0.0.1:7350 --url http://127.0.0.1:7351",
                "compare two nodes"
            )
        ]
    ) { options, console in
        let stream = try streamName(options.operands[0])
        var states: [State] = []
        var code = ExitCode.done
        for address in try NodeArguments.addresses(options) {
            let caller = try await NodeCaller([address])
            let body: [UInt8]
            do {
                let answer = try await caller.answer(
                    "/v1/streams/\(stream)/snapshot",
                    bytesMax: NodeCaller.stateBytesMax
                )
                body = answer.body
                if UnpublishedStream.isSaid(in: answer.headers) {
                    console.note("\(address): \(await MissingStream.text(stream, caller))")
                }
            } catch let failure as NoAnswer {
                console.note("reel: \(failure.message)")
                code = .unreachable
                continue
            }
            let state = try State(address, try SnapshotLines(body))
            try options[CommonSettings.json] ? console.write(state.json) : console.print(state.text)
            states.append(state)
        }
        let differ = states.contains { a in
            !a.isOwn || states.contains { $0.place == a.place && $0.computed != a.computed }
        }
        return differ ? .failed : code
    }
}

/// A snapshot of a node, with the digest computed from its lines.
private struct State {
    let node: NodeAddress
    let snapshot: SnapshotLines
    let computed: String

    init(_ node: NodeAddress, _ snapshot: SnapshotLines) throws(CommandError) {
        self.node = node
        self.snapshot = snapshot
        do throws(Fault) {
            computed = try NaiveSnapshot(snapshot.bytes).digest
        } catch {
            throw CommandError(.badData, "the snapshot of \(node) cannot be read: \(error.reason)")
        }
    }

    var isOwn: Bool { computed == snapshot.digest }
    var place: String { "\(snapshot.epoch):\(snapshot.seq)" }

    var text: String {
        let verdict = isOwn ? "computed from its lines: the same" : "BUT COMPUTED FROM ITS LINES: \(computed)"
        return "\(node): snapshot of epoch \(snapshot.epoch), seq \(snapshot.seq), digest \(snapshot.digest), "
            + verdict
    }

    /// The comparison as a line of JSON.
    var json: [UInt8] {
        var line = JSONObjectWriter()
        line.member("node", "\(node)")
        line.member("epoch", snapshot.epoch)
        line.member("seq", snapshot.seq)
        line.member("digest", snapshot.digest)
        line.member("computed", computed)
        return line.finishLine()
    }
}
