import Foundation
import ReelLab
import ReelNet
import Testing

@testable import reel

/// TLS, passwords and rights, against a real broker that asks for all of them.
@Suite(.realKafka, .serialized, .timeLimit(.minutes(15))) struct KafkaSecurityTests {
    /// A broker whose listener SECURE wants TLS and a password, and which lets nobody do what no ACL allows.
    private struct Guarded {
        let folder: TemporaryFolder
        let kafka: LocalKafka

        init() async throws {
            folder = try TemporaryFolder(prefix: "reel-guarded-")
            let request = "openssl req -newkey rsa:2048 -nodes -subj /CN=127.0.0.1 -keyout b.key -out b.csr"
            let own = "openssl req -x509 -newkey rsa:2048 -nodes -days 2"
            let sign = "openssl x509 -req -in b.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san"
            _ = try await Shell.output(
                """
                cd '\(folder.path)' && exec 2> log && echo subjectAltName=IP:127.0.0.1 > san \
                && \(own) -subj /CN=ours -keyout ca.key -out ca.pem \
                && \(own) -subj /CN=other -keyout o.key -out other.pem \
                && \(request) && \(sign) -out b.crt && cat b.key b.crt > broker.pem
                """
            )
            kafka = try LocalKafka(
                try RealKafka.home(),
                brokers: 1,
                listeners: ["SECURE": "SASL_SSL"],
                properties: [
                    "sasl.enabled.mechanisms": "PLAIN",
                    "listener.name.secure.plain.sasl.jaas.config":
                        "org.apache.kafka.common.security.plain.PlainLoginModule required"
                        + #" user_reel="right" user_guest="guest";"#,
                    "ssl.keystore.type": "PEM",
                    "ssl.keystore.location": folder.path + "/broker.pem",
                    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                    // The plain listeners are those of the test itself.
                    "super.users": "User:ANONYMOUS",
                ]
            )
        }

        func allow(_ operations: String..., to user: String = "reel") throws {
            let words = operations.flatMap { ["--operation", $0] }
            try kafka.tool(
                "org.apache.kafka.tools.AclCommand",
                ["--add", "--allow-principal", "User:\(user)"] + words
                    + ["--resource-pattern-type", "prefixed", "--topic", "reel."]
            )
        }

        /// A gateway of this user.
        func gateway(_ user: String) throws -> NodeProcess {
            try NodeProcess(
                [
                    "gateway", "--log", "kafka:" + kafka.bootstrap(of: "SECURE"), "--kafka.security.protocol=sasl_ssl",
                    "--kafka.sasl.mechanisms=PLAIN", "--kafka.sasl.username=\(user)",
                    "--kafka.ssl.ca.location=\(folder.path)/ca.pem",
                ],
                in: folder,
                name: user,
                shell: "export REEL_KAFKA_SASL_PASSWORD=\(user);"
            )
        }

        func run(
            _ words: [String],
            user: String = "reel",
            password: String = "right",
            authority: String = "ca.pem"
        ) async -> CommandRun {
            await CommandRun(
                words + [
                    "--log", "kafka:" + kafka.bootstrap(of: "SECURE"), "--kafka.security.protocol=sasl_ssl",
                    "--kafka.sasl.mechanisms=PLAIN", "--kafka.sasl.username=\(user)",
                    "--kafka.ssl.ca.location=\(folder.path)/\(authority)",
                ],
                environment: ["REEL_KAFKA_SASL_PASSWORD": password]
            )
        }
    }

    @Test func whoMayDoesAndWhoMayNotIsTold() async throws {
        let guarded = try await Guarded()
        let wrongPassword = await guarded.run(["topic", "check"], password: "geheim")
        #expect(wrongPassword.code == .unreachable)
        #expect(wrongPassword.errors.contains("refuses the login"), "\(wrongPassword.errors)")
        #expect(!(wrongPassword.errors + wrongPassword.output).contains("geheim"))

        let wrongAuthority = await guarded.run(["topic", "check"], authority: "other.pem")
        #expect(wrongAuthority.code == .unreachable)
        #expect(wrongAuthority.errors.contains("--kafka.ssl.ca.location must name its CA's certificate"))

        let secure = guarded.kafka.bootstrap(of: "SECURE")
        let plain = await CommandRun(["topic", "check", "--log", "kafka:\(secure)"])
        #expect(plain.code == .unreachable)
        #expect(plain.errors.contains("or a listener with TLS"), "\(plain.errors)")

        let noRights = await guarded.run(["topic", "create"], user: "guest", password: "guest")
        #expect(noRights.code == .failed)
        #expect(noRights.errors.contains("this user has no right to"), "\(noRights.errors)")

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

        // Who may read and not write.
        try guarded.allow("Read", "Describe", "DescribeConfigs", to: "guest")
        let gateway = try guarded.gateway("guest")
        let reason = "this user has no right to Write the topic reel."
        try await eventually("its log says why") { gateway.journal.contains(reason) }
        let event = #"{"type":"noop","site":"00000000-0000-4000-8000-000000000001","op":0}"#
        func publish() async throws -> (status: Int, body: String) {
            let answer = try await gateway.ask("POST", "/v1/streams/todo/events", body: #"{"events":[\#(event)]}"#)
            return (answer.status, String(decoding: answer.body, as: UTF8.self))
        }
        let refused = try await publish()
        #expect(refused.status == 503 && refused.body.contains(reason), "\(refused)")
        let ready = try await gateway.members("/readyz")
        #expect(ready["log"] as? String == "unavailable", "\(ready)")
        #expect((ready["detail"] as? String)?.hasPrefix("forbidden: " + reason) == true, "\(ready)")
        try guarded.allow("Write", to: "guest")
        try await eventually("a publish is taken") { try await publish().status == 200 }
        try await eventually("the log is ok") { try await gateway.members("/readyz")["log"] as? String == "ok" }
    }
}
