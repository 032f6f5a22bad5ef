import Foundation
import ReelLab
import ReelNet
import TestSupport
import Testing

@testable import ReelTool

/// Tests TLS, passwords and rights on a real broker that requires all of them.
@Suite(.realKafka, .serialized, .timeLimit(.minutes(15))) struct KafkaSecurityTests {
    /// A broker with two listeners that allows only what an ACL allows. SECURE requires TLS and a password; KNOWN
    /// requires TLS and a certificate of the client.
    private struct Guarded {
        let folder: TemporaryFolder
        let kafka: LocalKafka

        init() async throws {
            folder = try TemporaryFolder(prefix: "reel-guarded-")
            let new = "openssl req -newkey rsa:2048"
            let sign = "openssl x509 -req -CA ca.pem -CAkey ca.key -CAcreateserial -days 2"
            _ = try await Shell.output(
                """
                cd '\(folder.path)' && exec 2> log && echo subjectAltName=IP:127.0.0.1 > san \
                && \(new) -x509 -nodes -days 2 -subj /CN=ours -keyout ca.key -out ca.pem \
                && \(new) -x509 -nodes -days 2 -subj /CN=other -keyout other.key -out other.pem \
                && \(new) -nodes -subj /CN=127.0.0.1 -keyout b.key -out b.csr \
                && \(sign) -in b.csr -extfile san -out b.crt && cat b.key b.crt > broker.pem \
                && \(new) -passout pass:locked -subj /CN=device -keyout device.key -out device.csr \
                && \(sign) -in device.csr -out device.pem
                """
            )
            kafka = try LocalKafka(
                try RealKafka.home(),
                brokers: 1,
                listeners: ["SECURE": "SASL_SSL", "KNOWN": "SSL"],
                properties: [
                    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
                    "listener.name.secure.scram-sha-256.sasl.jaas.config": Self.scram,
                    "listener.name.secure.scram-sha-512.sasl.jaas.config": Self.scram,
                    "listener.name.known.ssl.client.auth": "required",
                    "ssl.truststore.type": "PEM",
                    "ssl.truststore.location": folder.path + "/ca.pem",
                    "listener.name.secure.plain.sasl.jaas.config":
                        "org.apache.kafka.common.security.plain.PlainLoginModule required"
                        + #" user_reel="right" user_guest="guest";"#,
                    "ssl.keystore.type": "PEM",
                    "ssl.keystore.location": folder.path + "/broker.pem",
                    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                    // Only the test itself uses the plain listeners.
                    "super.users": "User:ANONYMOUS",
                ]
            )
        }

        private static let scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"

        func allow(_ operations: String..., to user: String = "reel") throws {
            let words = operations.flatMap { ["--operation", $0] }
            try kafka.tool(
                "org.apache.kafka.tools.AclCommand",
                ["--add", "--allow-principal", "User:\(user)"] + words
                    + ["--resource-pattern-type", "prefixed", "--topic", "reel."]
            )
        }

        /// Returns the options with which a command connects to SECURE as this user, without the password.
        func words(_ user: String, _ mechanism: String = "PLAIN", authority: String = "ca.pem") -> [String] {
            [
                "--log", "kafka:" + kafka.bootstrap(of: "SECURE"), "--kafka.security.protocol=sasl_ssl",
                "--kafka.sasl.mechanisms=\(mechanism)", "--kafka.sasl.username=\(user)",
                "--kafka.ssl.ca.location=\(folder.path)/\(authority)",
            ]
        }

        /// The options with which a command connects to KNOWN, without a certificate.
        var certifiedWords: [String] {
            [
                "--log", "kafka:" + kafka.bootstrap(of: "KNOWN"), "--kafka.security.protocol=ssl",
                "--kafka.ssl.ca.location=\(folder.path)/ca.pem",
            ]
        }

        /// Returns the options that name a certificate, without the password of its key.
        func certificate(_ name: String) -> [String] {
            [
                "--kafka.ssl.certificate.location=\(folder.path)/\(name).pem",
                "--kafka.ssl.key.location=\(folder.path)/\(name).key",
            ]
        }

        /// Starts a gateway of this user.
        func gateway(_ user: String) throws -> NodeProcess {
            try NodeProcess(["gateway"] + words(user), in: folder, name: user, shell: Self.password(user))
        }

        static func password(_ password: String) -> String { "export REEL_KAFKA_SASL_PASSWORD=\(password);" }

        func run(
            _ words: [String],
            user: String = "reel",
            _ mechanism: String = "PLAIN",
            password: String = "right"
        ) async -> CommandRun {
            let environment = ["REEL_KAFKA_SASL_PASSWORD": password]
            return await CommandRun(words + self.words(user, mechanism), environment: environment)
        }
    }

    @Test("a user with the right succeeds, and a user without it sees an error that names it")
    func enforcesKafkaRights() async throws {
        let guarded = try await Guarded()
        let check = ["topic", "check"]
        try await BuiltProgram.complains(
            check + guarded.words("reel"),
            .unreachable,
            "refuses the login",
            shell: Guarded.password("geheim"),
            hides: "geheim"
        )
        try await BuiltProgram.complains(
            check + guarded.words("reel", authority: "other.pem"),
            .unreachable,
            "--kafka.ssl.ca.location must name its CA's certificate",
            shell: Guarded.password("right")
        )
        let secure = guarded.kafka.bootstrap(of: "SECURE")
        try await BuiltProgram.complains(check + ["--log", "kafka:\(secure)"], .unreachable, "or a listener with TLS")
        for words in [["topic", "create"], ["dump"], ["gateway", "--listen", "127.0.0.1:0"]] {
            try await BuiltProgram.complains(
                words + guarded.words("guest"),
                .failed,
                "this user has no right to",
                shell: Guarded.password("guest")
            )
        }

        try guarded.allow("Read", "Write", "Describe", "Create")
        let made = await guarded.run(["topic", "create"])
        #expect(made.code == .done, "\(made.errors)")
        let unchecked = await guarded.run(["topic", "check"])
        #expect(unchecked.code == .done, "\(unchecked.errors)")
        #expect(unchecked.output.contains("its settings could not be checked, this user may not read them"))

        try guarded.allow("DescribeConfigs")
        let checked = await guarded.run(["topic", "check"])
        #expect(checked.code == .done, "\(checked.errors)")
        #expect(!checked.output.contains("could not be checked"), "\(checked.output)")
        #expect(await guarded.run(["dump"]).code == .done)

        // The user guest may read and may not write.
        try guarded.allow("Read", "Describe", "DescribeConfigs", to: "guest")
        let gateway = try guarded.gateway("guest")
        let reason = "this user has no right to Write the topic reel."
        try await eventually("its log says why") { gateway.logger.contains(reason) }
        let event = EventText.sent("noop", "00000000-0000-4000-8000-000000000001", 0).text
        func publish() async throws -> (status: Int, body: String) {
            let answer = try await gateway.ask("POST", "/v1/streams/todo/events", body: #"{"events":[\#(event)]}"#)
            return (answer.status, String(decoding: answer.body, as: UTF8.self))
        }
        let refused = try await publish()
        #expect(refused.status == 503 && refused.body.contains("log_unavailable"), "\(refused)")
        #expect(!refused.body.contains(reason), "clients do not get the operator's sentence: \(refused)")
        let ready = try await gateway.members("/readyz")
        #expect(ready["log"] as? String == "unavailable", "\(ready)")
        #expect((ready["detail"] as? String)?.hasPrefix("forbidden: " + reason) == true, "\(ready)")
        try guarded.allow("Write", to: "guest")
        try await eventually("a publish is taken") { try await publish().status == 200 }
        try await eventually("the log is ok") { try await gateway.members("/readyz")["log"] as? String == "ok" }
    }

    @Test("the broker accepts a correct SCRAM password from a librdkafka that supports Kafka 4")
    func acceptsScramPassword() async throws {
        let guarded = try await Guarded()
        try guarded.allow("Read", "Write", "Describe", "DescribeConfigs", "Create", to: "device")
        // `make test-kafka` installs a newer library there. The tests themselves run with Debian's library.
        let newer = FileManager.default.currentDirectoryPath + "/.build/librdkafka"
        let libraries = ["", newer].filter { $0.isEmpty || FileManager.default.fileExists(atPath: $0) }
        if libraries.count == 1 {
            print("NOT TESTED: SCRAM with a newer librdkafka; there is none in .build/librdkafka")
        }
        for (mechanism, password) in [("SCRAM-SHA-256", "first"), ("SCRAM-SHA-512", "second")] {
            try guarded.kafka.tool(
                "kafka.admin.ConfigCommand",
                ["--alter", "--entity-type", "users", "--entity-name", "device", "--add-config"]
                    + ["\(mechanism)=[password=\(password)]"]
            )
            for library in libraries {
                let load = library.isEmpty ? "" : "export LD_LIBRARY_PATH='\(library)';"
                let version = try await BuiltProgram.run(["version"], shell: load).output
                let numbers = version.matches(of: /librdkafka (\d+)\.(\d+)\.(\d+)/).first
                    .flatMap { match in [match.1, match.2, match.3].compactMap { Int($0) } }
                let isStrict = !(try #require(numbers)).lexicographicallyPrecedes([2, 6, 1])
                let words = guarded.words("device", mechanism)
                if isStrict {
                    let made = try await BuiltProgram.run(
                        ["topic", "create"] + words,
                        shell: load + Guarded.password(password)
                    )
                    #expect(made.code == 0, "\(made)")
                } else {
                    try await BuiltProgram.complains(
                        ["topic", "create"] + words,
                        .unreachable,
                        "with Kafka 4 librdkafka 2.6.1 or newer",
                        shell: load + Guarded.password(password)
                    )
                }
                for (user, password) in [("device", "geheim"), ("nobody", password)] {
                    try await BuiltProgram.complains(
                        ["topic", "check"] + guarded.words(user, mechanism),
                        .unreachable,
                        "refuses the login",
                        shell: load + Guarded.password(password),
                        hides: password
                    )
                }
            }
        }
    }

    @Test("the broker accepts only a certificate of an authority that it trusts") func acceptsTrustedCertificate()
        async throws
    {
        let guarded = try await Guarded()
        try guarded.allow("Read", "Write", "Describe", "DescribeConfigs", "Create", to: "CN=device")
        let made = await CommandRun(
            ["topic", "create"] + guarded.certifiedWords + guarded.certificate("device"),
            environment: ["REEL_KAFKA_SSL_KEY_PASSWORD": "locked"]
        )
        #expect(made.code == .done, "\(made.errors)")
        let check = ["topic", "check"] + guarded.certifiedWords
        for words in [[], guarded.certificate("other")] {
            try await BuiltProgram.complains(
                check + words,
                .unreachable,
                "does not let this client in"
            )
        }
        try await BuiltProgram.complains(
            check + guarded.certificate("device"),
            .usage,
            "ssl.key",
            shell: "export REEL_KAFKA_SSL_KEY_PASSWORD=geheim;",
            hides: "geheim"
        )
    }
}
