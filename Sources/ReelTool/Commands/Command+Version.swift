import ReelKafka

extension Command {
    /// `reel version`: the version of the program.
    static let version = Command(
        "version",
        "print the version of the program, its commit, protocol, fold and Kafka library",
        about: """
            The fold version is that of new logs. The commit is known if `make build` has built the program in a Git
            repository. `-dirty` after the commit means that the sources had changed since that commit.
            """,
        settings: [CommonSettings.json],
        examples: [Example("reel version --json", "as a JSON object")]
    ) { options, console in
        if options[CommonSettings.json] {
            let library = KafkaLibrary.version
            try console.print(
                #"{"commit":"\#(Version.commit)","fold":1,"librdkafka":"\#(library)","protocol":"reel.v1","#
                    + #""version":"\#(Version.number)"}"#
            )
        } else {
            try console.print(
                "reel \(Version.number), commit \(Version.commit), protocol reel.v1, fold version 1,"
                    + " librdkafka \(KafkaLibrary.version)"
            )
        }
        return .done
    }
}
