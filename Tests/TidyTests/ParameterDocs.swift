/// The rules for the doc comments of functions: a caller finds each parameter and each error under its name.
enum ParameterDocs {
    /// The number of parameters from which a public function lists them.
    static let listedFrom = 3

    /// Checks a file by all three rules.
    static func all(_ file: TrackedFile) -> [Offence] {
        guard file.isSource, file.isSwift else { return [] }
        return DocumentedFunction.all(in: file).flatMap { function in
            (unknownNames(function) + missingParameters(function) + missingErrors(function)).map {
                Offence(file, line: function.line, $0)
            }
        }
    }

    /// A name in a list of parameters is the internal name of a parameter.
    private static func unknownNames(_ function: DocumentedFunction) -> [String] {
        function.comment.parameters.map(\.name).filter { !function.parameters.contains($0) }.map {
            "`\(function.name)` has no parameter “\($0)”"
        }
    }

    /// A public function with three or more parameters lists all of them, and says something about each.
    ///
    /// An initializer may leave this to the documented properties of its type if all its parameters have their names.
    /// An implementation may refer to its requirement: “see `EventLog.read`”.
    private static func missingParameters(_ function: DocumentedFunction) -> [String] {
        guard isLong(function) else { return [] }
        let isMemberwise = function.documentedProperties.isSuperset(of: function.parameters)
        let described = isMemberwise ? function.documentedProperties : []
        let listed = described.union(function.comment.parameters.filter { !$0.text.isEmpty }.map(\.name))
        return function.parameters.filter { !listed.contains($0) }.map {
            "the comment of `\(function.name)` does not describe “\($0)”"
        }
    }

    /// A public function with three or more parameters names the errors that it throws.
    private static func missingErrors(_ function: DocumentedFunction) -> [String] {
        guard isLong(function), function.doesThrow, (function.comment.errors ?? "").isEmpty else { return [] }
        return ["the comment of `\(function.name)` has no “- Throws:”"]
    }

    private static func isLong(_ function: DocumentedFunction) -> Bool {
        function.isPublic && function.parameters.count >= listedFrom
            && !function.comment.references.contains(function.name)
    }
}
