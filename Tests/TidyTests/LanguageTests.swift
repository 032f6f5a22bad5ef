import Testing

/// Checks that each rule of language finds an offence and accepts plain text.
@Suite struct LanguageTests {
    private func page(_ text: String) -> TrackedFile { TrackedFile("docs/page.md", text) }
    private func source(_ text: String) -> TrackedFile { TrackedFile("Sources/ReelCore/A.swift", text) }

    @Test("a sentence of more than 28 words is found, however its lines are wrapped")
    func sentences() {
        let long = Array(repeating: "word", count: 29).joined(separator: " ")
        #expect(Language.sentences(page(long + ".\n")).map(\.line) == [1])
        #expect(Language.sentences(page("First.\n\n- An item\n  " + long + "\n")).map(\.line) == [3])
        let half = Array(repeating: "word", count: 20).joined(separator: " ")
        #expect(Language.sentences(page("\(half). \(half): \(half)\n")).isEmpty)
        for other in ["```\n\(long)\n```\n", "| \(long) |\n", "# \(long)\n", "`\(long)`\n"] {
            #expect(Language.sentences(page(other)).isEmpty, "\(other)")
        }
        #expect(Language.sentences(source("/// \(long)")).isEmpty, "pages only")
    }

    @Test(
        "a phrase that is not plain is found in pages and in comments, and not in code",
        arguments: [
            "it is made an" + "ew", "it goes" + " on", "who" + "ever asks", "some" + "body asks", "so" + " many",
        ]
    )
    func phrases(phrase: String) {
        #expect(Language.phrases(page("A text:\n\(phrase).\n")).count == 1)
        #expect(Language.phrases(source("    // \(phrase)\n")).count == 1)
        #expect(Language.phrases(source("/// A text\n/// and \(phrase).\nvar a = 1\n")).map(\.line) == [1])
        #expect(Language.phrases(page("`\(phrase)`\n\n```\n\(phrase)\n```\n")).isEmpty)
        #expect(Language.phrases(source("let text = \"\(phrase)\"\n")).isEmpty)
    }

    @Test("a doc comment that begins with a riddle is found", arguments: ["What", "Who", "Whether", "So"])
    func beginnings(word: String) {
        #expect(Language.beginnings(source("/// \(word) is asked.\nvar a = 1\n")).map(\.line) == [1])
        #expect(Language.beginnings(source("/// The text\n/// \(word) is not the first word.\nvar a = 1\n")).isEmpty)
        #expect(Language.beginnings(source("// \(word) is no doc comment.\n")).isEmpty)
    }

    @Test("another spelling of a term is found")
    func spellings() {
        #expect(Language.spellings(page("It is in the jour" + "nal.\n")).count == 1)
        #expect(Language.spellings(page("A Web" + "socket and a WebSocket.\n")).count == 1)
        #expect(Language.spellings(source("/// A time" + "-out.\n")).count == 1)
        #expect(Language.spellings(page("A timeout, a WebSocket, a log line.\n")).isEmpty)
    }
}
