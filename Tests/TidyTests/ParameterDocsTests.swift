import Testing

/// Each rule for the doc comments of functions finds an offence, and accepts complete comments.
@Suite struct ParameterDocsTests {
    private func offences(_ text: String, in path: String = "Sources/ReelCore/Some.swift") -> [String] {
        ParameterDocs.all(TrackedFile(path, text)).map(\.what)
    }

    // MARK: Names

    @Test("a name in a list that is no parameter is found, also of an internal function")
    func unknownName() {
        let single = "/// Reads.\n/// - Parameter to: the end.\nfunc read(from: Int) {}\n"
        #expect(offences(single) == ["`read` has no parameter “to”"])
        let list = """
            struct A {
                /// Creates a value.
                ///
                /// - Parameters:
                ///   - name: the name,
                ///     which is: short.
                ///   - names: the others.
                private init?(name: String, others: [String]) {}
            }
            """
        #expect(offences(list) == ["`init` has no parameter “names”"])
        #expect(offences("/// An element.\n/// - Parameter at: the index.\nsubscript(index: Int) -> Int {") != [])
    }

    @Test("a list names parameters by their internal names")
    func internalName() {
        #expect(offences("/// Reads.\n/// - Parameter start: the seq.\nfunc read(from start: Int) {}\n").isEmpty)
        #expect(offences("/// Reads.\n/// - Parameter from: the seq.\nfunc read(from start: Int) {}\n").count == 1)
        #expect(offences("/// Reads.\n/// - Parameter `in`: the seq.\nfunc read(`in`: Int) {}\n").isEmpty)
    }

    @Test(
        "the names of parameters are found in any declaration",
        arguments: [
            "func read(_ a: [String: Int], b: (Int, Int) -> Void = { _, _ in }, c: String)",
            "func read<T: Seq<A, B>>(_ a: T, b: Result<A, B>, c: Int) where T: Sendable",
            #"@inlinable public static func read(a: Int, b: String = "a, (b\"", c: Int = 64 << 20)"#,
            "@discardableResult\npublic mutating func read(\n    _ a: Int,\n    // An option.\n    b: Int,\n    c: Int\n)",
            "nonisolated(unsafe) static func < (a: Int, b: Int, c: Int)",
            "@available(*, deprecated) convenience init!(a: Int, _ b: inout [Int], other c: Int)",
            "subscript<T>(a: Int, b: Int, c c: Int) -> Int",
            "func `repeat`(a: Int, _: Int, b: Int, c: consuming Int)",
        ]
    )
    func anyDeclaration(declaration: String) throws {
        let text = "let a = 1\n\n/// Reads.\n" + declaration + " {\n}\n"
        let function = try #require(DocumentedFunction.all(in: TrackedFile("Sources/ReelCore/A.swift", text)).first)
        #expect(function.parameters == ["a", "b", "c"])
        #expect(!function.doesThrow)
    }

    @Test("other declarations and functions without a doc comment are ignored")
    func otherDeclarations() {
        let text = """
            /// A function (and its initializer).
            /// - Parameter b: anything.
            typealias A = (_ a: Int) -> Void

            /// A value.
            let function = read(a: 1, b: 2, c: 3)

            // Reads.
            public func read(a: Int, b: Int, c: Int) throws {}
            """
        #expect(offences(text).isEmpty)
    }

    // MARK: Lists

    @Test("a public function with three parameters describes each")
    func missingParameters() {
        let start = "/// Reads.\n///\n/// - Parameters:\n///   - a: the seq.\n///   - b:\n"
        let end = "public func read(_ a: Int, b: Int, c: Int) {}\n"
        #expect(
            offences(start + end) == [
                "the comment of `read` does not describe “b”", "the comment of `read` does not describe “c”",
            ]
        )
        let rest = "///     the text.\n///   - c: the size in bytes.\n/// - Returns: it.\n"
        #expect(offences(start + rest + end).isEmpty)
        #expect(offences("/// Reads `a`, `b` and `c`.\n" + end).count == 3)
        #expect(offences("/// Reads `a`, `b` and `c`.\n" + end.replacing("public", with: "package")).count == 3)
        #expect(offences("/// Reads `a`, `b` and `c`.\n" + end.replacing("public ", with: "")).isEmpty)
        #expect(offences("/// Reads `a` and `b`.\n" + end.replacing(", c: Int", with: "")).isEmpty)
    }

    @Test("a requirement of a public protocol and a member of a public extension are public")
    func publicScopes() {
        let member = "\n    /// Reads.\n    func read(a: Int, b: Int, c: Int)\n}\n"
        #expect(offences("public protocol P: Sendable {" + member).count == 3)
        #expect(offences("@objc package extension P\nwhere Element: Sendable {" + member).count == 3)
        #expect(offences("protocol P {" + member).isEmpty)
        #expect(offences("public struct P {" + member).isEmpty)
        #expect(offences("public protocol P {\n    func end()\n}\n\nextension P {" + member).isEmpty)
    }

    @Test("an initializer whose parameters are documented properties needs no list")
    func memberwise() {
        let text = """
            public struct A {
                /// The name.
                public var name: String
                /// The size in bytes.
                @usableFromInline
                private(set) var size: Int
                /// The limit.
                static let limit = 1

                /// Creates a value.
                public init(name: String, size: Int, limit: Int) {
                    let other = 1
                }
            }
            """
        #expect(offences(text).isEmpty)
        #expect(offences(text.replacing("/// The limit.", with: "// The limit.")).count == 3)
        #expect(offences(text.replacing("init(name", with: "func make(name")).count == 3, "initializers only")
    }

    @Test("an implementation may refer to its requirement")
    func reference() {
        let end = "public func read(_ a: Int, b: Int, c: Int) throws {}\n"
        #expect(offences("/// Reads; see `Log.read`.\n" + end).isEmpty)
        #expect(offences("/// Reads; see `Log.write`.\n" + end).count == 4)
        #expect(offences("/// Reads; see `Log.read`.\n/// - Parameter d: it.\n" + end).count == 1)
    }

    // MARK: Errors

    @Test(
        "a public function with three parameters describes its errors",
        arguments: ["throws", "throws(LogError) -> Int", "async throws", "\n    async throws(LogError)\n    -> Int"]
    )
    func missingErrors(effects: String) {
        let start = "/// Reads.\n///\n/// - Parameters:\n///   - a: one.\n///   - b: two.\n///   - c: three.\n"
        let end = "public func read(_ a: Int, b: () throws -> Void, c: Int) \(effects) {\n}\n"
        #expect(offences(start + end) == ["the comment of `read` has no “- Throws:”"])
        #expect(offences(start + "/// - Throws:\n" + end).count == 1)
        #expect(offences(start + "/// - Throws: `closed`.\n" + end).isEmpty)
        #expect(offences(start + "/// - Throws:\n///   - `closed`: the end.\n" + end).isEmpty)
        #expect(offences(start + end.replacing(effects, with: "rethrows")).isEmpty)
        #expect(offences(start + end.replacing(effects, with: "-> () throws -> Void")).isEmpty)
    }

    // MARK: Files

    @Test("the rules hold for Sources")
    func folders() {
        let text = "/// Reads.\npublic func read(a: Int, b: Int, c: Int) {}\n"
        #expect(offences(text).count == 3)
        #expect(offences(text, in: "Tests/ReelCoreTests/Some.swift").isEmpty)
        #expect(offences(text, in: "docs/page.md").isEmpty)
    }
}
