import ReelKafka

extension Command {
    /// What this program is.
    static let version = Command(
        "version",
        "print the version of the program, its protocol, its fold and its Kafka library",
        about: "The fold version is the one that new logs begin with.",
        settings: [CommonSettings.json],
        examples: [Example("reel version --json", "as a JSON object")]
    ) { options, console in
        if options[CommonSettings.json] {
            let library = KafkaLibrary.version
            try console.print(
                #"{"fold":1,"librdkafka":"\#(library)","protocol":"reel.v1","version":"\#(Version.number)"}"#
            )
        } else {
            try console.print(
                "reel \(Version.number), protocol reel.v1, fold version 1, librdkafka \(KafkaLibrary.version)"
            )
        }
        return .done
    }
}

/// The version of this program; nodes announce it as their build.
enum Version {
    static let number = "0.1.0"
}
