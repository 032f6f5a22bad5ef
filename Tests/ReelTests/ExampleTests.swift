import Testing

@testable import ReelTool

/// Tests that the lines shown by the help can be typed unchanged.
@Suite struct ExampleTests {
    /// Returns the command lines that a shell would start. It splits at `|`, `&&` and `;`, and
    /// drops quotes and redirections.
    static func commands(of line: String) -> [[String]] {
        var (commands, words, word) = ([[String]](), [String](), String?.none)
        var quote: Character?
        func end() {
            if let word { words.append(word) }
            word = nil
        }
        for character in line {
            switch (character, quote) {
            case ("'", nil), ("\"", nil):
                (quote, word) = (character, word ?? "")
            case (_, let open?) where character == open:
                quote = nil
            case (" ", nil):
                end()
            case ("|", nil), ("&", nil), (";", nil):
                end()
                if !words.isEmpty { commands.append(words) }
                words = []
            default:
                word = (word ?? "") + String(character)
            }
        }
        end()
        return (commands + [words]).map { words in
            var kept: [String] = []
            for (index, word) in words.enumerated() where !["<", ">"].contains(word) {
                if index > 0, ["<", ">"].contains(words[index - 1]) { continue }
                kept.append(word)
            }
            return kept
        }
    }

    @Test("a line is read as a shell does") func aLineIsRead() {
        let commands = Self.commands(of: #"reel a '{"x": 1}' "" < in | jq .type > out"#)
        #expect(commands == [["reel", "a", #"{"x": 1}"#, ""], ["jq", ".type"]])
    }

    @Test("every example is a command line of its command") func everyExampleIsA() throws {
        let parser = ArgumentParser(commands: CommandTable.all, environment: [:])
        for command in CommandTable.all {
            for example in command.examples {
                let commands = Self.commands(of: example.line).filter { $0.first == "reel" }
                #expect(commands.contains { $0.dropFirst().starts(with: command.words) }, "\(example.line)")
                for words in commands {
                    guard case .run = try parser.request(Array(words.dropFirst())) else {
                        Issue.record("\(example.line) runs nothing")
                        continue
                    }
                }
            }
        }
    }

    @Test(
        "those that need nothing run",
        arguments: ["reel help fold", "reel help --markdown > docs/reference/cli.md", "reel version --json"]
    )
    func thoseThatNeedNothing(line: String) async {
        #expect(CommandTable.all.flatMap(\.examples).contains { $0.line == line })
        let run = await CommandRun(Array(Self.commands(of: line)[0].dropFirst()))
        #expect(run.code == .done)
        #expect(!run.output.isEmpty)
    }
}
