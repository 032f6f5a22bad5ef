import ReelKafka
import Testing

@testable import ReelTool

/// Tests that properties of the Kafka client are settings. A property that correctness needs is refused, all others are
/// passed on, and no secret is shown.
@Suite struct KafkaSettingTests {
    private func run(_ words: [String], _ environment: [String: String] = [:]) throws -> [String: String] {
        let parser = ArgumentParser(commands: CommandTable.all, environment: environment)
        guard case .run(_, let options) = try parser.request(["gateway"] + words) else { return [:] }
        return try KafkaArguments.properties(options)
    }

    private func complaint(_ words: [String], _ environment: [String: String] = [:]) -> String {
        do {
            return "took \(try run(words, environment))"
        } catch {
            return CommandError(error).code == .usage ? CommandError(error).message : "not a usage error"
        }
    }

    @Test("other properties pass from the command line and the environment") func otherPropertiesPassFrom() throws {
        let properties = try run(
            ["--kafka.security.protocol=sasl_ssl", "--kafka.linger.ms", "2"],
            ["REEL_KAFKA_SASL_PASSWORD": "geheim=1", "REEL_KAFKA_LINGER_MS": "9"]
        )
        #expect(
            properties == [
                "security.protocol": "sasl_ssl", "queue.buffering.max.ms": "2", "sasl.password": "geheim=1",
            ]
        )
    }

    @Test(
        "the command line refuses a Kafka property that correctness depends on, with a reason",
        arguments: [
            "acks=1", "request.required.acks=1", "enable.idempotence=false", "message.timeout.ms=1000",
            "delivery.timeout.ms=1000", "retries=3", "isolation.level=read_committed", "auto.offset.reset=earliest",
            "enable.auto.commit=true", "partitioner=random", "check.crcs=false", "group.id=mine", "transactional.id=t",
            "bootstrap.servers=a:1", "allow.auto.create.topics=true", "message.max.bytes=2000",
        ]
    ) func refusesUnsafeProperty(property: String) {
        let name = property.prefix { $0 != "=" }
        let said = complaint(["--kafka.\(property)"])
        #expect(said.hasPrefix("--kafka.\(name) cannot be set: "), "\(said)")
        let variable = "REEL_KAFKA_" + name.uppercased().map { $0 == "." ? "_" : String($0) }.joined()
        let value = String(property.split(separator: "=")[1])
        #expect(complaint([], [variable: value]).hasPrefix("\(variable) cannot be set: "))
    }

    @Test(
        "the command line explains a wrong Kafka property",
        arguments: [
            ("socket.timeout.ms=soon", "--kafka.socket.timeout.ms is `soon`; expected is 10 .. 300000"),
            ("socket.timeout.ms=50x", "--kafka.socket.timeout.ms is `50x`; expected is 10 .. 300000"),
            ("socket.timeout.ms=1", "--kafka.socket.timeout.ms is `1`; expected is 10 .. 300000"),
            ("security.protocol=tls", "is `tls`; expected is plaintext, ssl, sasl_plaintext, sasl_ssl"),
            ("socket.nagle.disable=maybe", "is `maybe`; expected is true, false"),
            ("secruity.protocol=ssl", "has no --kafka.secruity.protocol, did you mean --kafka.security.protocol?"),
            ("rebalance_cb=1", "has no --kafka.rebalance_cb"),
        ]
    ) func explainsWrongProperty(property: String, says: String) {
        #expect(complaint(["--kafka.\(property)"]).contains(says), "\(complaint(["--kafka.\(property)"]))")
    }

    @Test("an empty variable is named") func anEmptyVariableIsNamed() {
        let said = complaint([], ["REEL_KAFKA_LINGER_MS": ""])
        #expect(said.hasPrefix("REEL_KAFKA_LINGER_MS is set, but empty; expected is "), "\(said)")
        let log = complaint([], ["REEL_LOG": ""])
        #expect(log.hasPrefix("REEL_LOG is set, but empty; expected is LOG: give it a value, or unset it"), "\(log)")
    }

    @Test("two names of one property do not contradict each other") func twoNamesOfOne() {
        let said = complaint(["--kafka.linger.ms=1", "--kafka.queue.buffering.max.ms=2"])
        #expect(said.contains("are two names of one property"), "\(said)")
    }

    @Test(
        "a secret is known as one",
        arguments: ["sasl.password", "ssl.key.password", "ssl.keystore.password", "ssl.key.pem"]
    )
    func aSecretIsKnown(name: String) {
        #expect(KafkaProperty.named(name)?.isSecret == true)
        #expect(KafkaProperty.named("sasl.username")?.isSecret == false)
    }

    @Test("every refused property of the library is found") func everyRefusedPropertyOf() {
        let refused = KafkaProperty.all.filter { $0.refusal != nil }
        #expect(refused.count > 20)
        for property in KafkaProperty.all where property.refusal == nil {
            #expect(!["acks", "idempotence", "auto.commit", "group.id"].contains { property.name.contains($0) })
        }
    }
}
