extension Command {
    /// What this program is.
    static let version = Command(
        "version",
        "print the version of the program, its protocol and its fold",
        about: "The fold version is the one that new logs begin with.",
        settings: [CommonSettings.json],
        examples: [Example("reel version --json", "as a JSON object")]
    ) { options, console in
        if options[CommonSettings.json] {
            try console.print(#"{"fold":1,"protocol":"reel.v1","version":"\#(Version.number)"}"#)
        } else {
            try console.print("reel \(Version.number), protocol reel.v1, fold version 1")
        }
        return .done
    }
}

/// The version of this program; nodes announce it as their build.
enum Version {
    static let number = "0.1.0"
}
