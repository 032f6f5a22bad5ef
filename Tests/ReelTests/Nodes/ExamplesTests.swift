import Foundation
import NodeTestSupport
import ReelLab
import TestSupport
import Testing

@testable import ReelTool

/// The examples as programs, on two devices and with a real node.
@Suite(.timeLimit(.minutes(5))) struct ExamplesTests {
    /// Runs commands in an empty folder beside a node. `$url` is the address of the node.
    private func run(_ commands: String) async throws -> BuiltProgram.Run {
        let folder = try TemporaryFolder(prefix: "reel-examples-")
        let port = try HeldPort()
        let script = folder.path + "/commands"
        let text = """
            cd '\(folder.path)'
            export PATH='\(URL(filePath: BuiltProgram.path).deletingLastPathComponent().path)':$PATH
            export REEL_LISTEN=127.0.0.1:\(port.number) REEL_URL=http://127.0.0.1:\(port.number)
            url=$REEL_URL
            reel serve --data node >node.log 2>&1 & node=$!
            trap 'kill $node; wait' EXIT
            reel ready --wait 30 >ready.log
            \(commands)
            """
        try text.write(toFile: script, atomically: true, encoding: .utf8)
        return try await Shell.run("timeout --kill-after 5 100 bash -e \"$0\"", [script])
    }

    @Test("two light switches: the last absolute change wins, and all relative changes count")
    func lightSwitch() async throws {
        let run = try await run(
            """
            example-light-switch $url a on
            example-light-switch $url b show
            # Both are without a network, and press and switch.
            example-light-switch - a press
            example-light-switch - b press
            example-light-switch - a on
            example-light-switch - b off
            example-light-switch $url a show
            example-light-switch $url b show
            example-light-switch $url a press
            example-light-switch $url b show
            """
        )
        let expected = """
            switch: on, button: off
            switch: on, button: off
            switch: on, button: on
            switch: on, button: on
            switch: on, button: on
            switch: off, button: on
            switch: on, button: on
            switch: off, button: off
            switch: off, button: on
            switch: off, button: on

            """
        #expect(run.code == 0 && run.output == expected, "\(run)")
    }

    @Test("two todo lists: each device has the tasks of both, also those that were added without a network")
    func todo() async throws {
        let run = try await run(
            """
            milk=$(example-todo --node $url --store a add Milk)
            example-todo --store b add Bread >/dev/null
            example-todo --node $url --store b done $milk
            example-todo --node $url --store a list
            example-todo --store a done nothing 2>error.log && exit 1
            cat error.log
            """
        )
        let lines = run.output.split(separator: "\n")
        #expect(run.code == 0 && lines.count == 4, "\(run)")
        #expect(lines.first?.hasPrefix("[ ] ") == true && lines.first?.hasSuffix(" Bread") == true, "\(run)")
        #expect(lines.dropFirst().first?.hasPrefix("[x] ") == true, "\(run)")
        #expect(lines.last == "example-todo: found no task nothing here", "\(run)")
    }
}
