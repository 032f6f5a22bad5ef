import Foundation
import ReelCore
import ReelLab
import ReelNet
import Testing

/// Tests that foreign Kafka programs can read the topic and write to it.
@Suite(.realKafka, .serialized, .timeLimit(.minutes(15))) struct OtherPeoplesKafkaTests {
    @Test("every reader gets the same bytes and dense offsets") func everybodyReadsTheSame() async throws {
        let deployment = try await KafkaDeployment()
        for number in 0..<40 {
            let events = (0..<5).map { KafkaDeployment.event(number, op: $0) }.joined(separator: ",")
            let answer = try await deployment.gateway.ask(
                "POST",
                "/v1/streams/stream-\(number)/events",
                body: "{\"epoch\":\"\(deployment.epoch)\",\"events\":[\(events)]}"
            )
            #expect(answer.status == 200)
        }
        let ours = try await deployment.dump()
        #expect(ours.count == 200)
        for (partition, records) in Dictionary(grouping: ours, by: \.partition) {
            #expect(records.map(\.seq) == Array(0..<records.count), "partition \(partition)")
            #expect(
                records.allSatisfy { StreamName($0.key)?.partition(of: KafkaDeployment.partitions) == partition }
            )
        }
        if try await Shell.has("kcat -V", "kcat: apt-get install kcat") {
            let printed = try await Shell.output(
                "kcat -C -q -e -o beginning -b \(deployment.kafka.bootstrap) -t \(deployment.topic) -f '%p %o %k %s\\n'"
            )
            #expect(try Set(records(printed)) == Set(ours))
        }
        if try await hasPython() {
            let printed = try await python(
                """
                consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "reader",
                    "enable.partition.eof": True, "enable.auto.commit": False})
                partitions = consumer.list_topics(topic).topics[topic].partitions
                consumer.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in partitions])
                ends = 0
                while ends < len(partitions):
                    message = consumer.poll(20)
                    assert message is not None, "no message"
                    if message.error():
                        assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
                        ends += 1
                        continue
                    assert [(n, len(v)) for n, v in message.headers() or []] in ([], [("p", 16)]), message.headers()
                    print(message.partition(), message.offset(), message.key().decode(), message.value().decode())
                consumer.close()
                """,
                deployment
            )
            #expect(try Set(records(printed)) == Set(ours))
        }
    }

    @Test("a plain publisher is a legal one where it partitions as java does") func aPlainPublisherIs() async throws {
        let deployment = try await KafkaDeployment()
        var expected = 0

        // Kafka's own console producer must choose the same partitions for 300 names as Reel does.
        let lines = (0..<300).map { "java.\($0)\t\(KafkaDeployment.event($0))\n" }.joined()
        try lines.write(toFile: deployment.folder.path + "/events", atomically: true, encoding: .utf8)
        let home = try RealKafka.home()
        _ = try await Shell.output(
            "'\(home.java)' -Dlog4j2.level=ERROR -cp '\(home.path)/libs/*' org.apache.kafka.tools.ConsoleProducer"
                + " --bootstrap-server \(deployment.kafka.bootstrap) --topic \(deployment.topic)"
                + " --reader-property parse.key=true < '\(deployment.folder.path)/events'"
        )
        expected += 300

        if try await hasPython() {
            _ = try await python(produce("partitioner", "murmur2_random", names: "legal", sites: 1_000), deployment)
            expected += 100
        }
        if try await Shell.has("kcat -V", "kcat: apt-get install kcat") {
            let lines = (0..<100).map { "kcat.\($0)\t\(KafkaDeployment.event(2_000 + $0))\n" }.joined()
            try lines.write(toFile: deployment.folder.path + "/more", atomically: true, encoding: .utf8)
            _ = try await Shell.output(
                "kcat -P -b \(deployment.kafka.bootstrap) -t \(deployment.topic) -X partitioner=murmur2_random"
                    + " -K '\t' < '\(deployment.folder.path)/more'"
            )
            expected += 100
        }
        let records = try await deployment.dump()
        #expect(records.count == expected)
        for record in records {
            #expect(StreamName(record.key)?.partition(of: KafkaDeployment.partitions) == record.partition, "\(record)")
        }
        try await deployment.settled()
        #expect(try await deployment.voids() == [:])
        let events = try await deployment.gateway.members("/v1/streams/java.7/events")["events"] as? [[String: Any]]
        #expect(events?.count == 1)
    }

    @Test("a publisher that partitions otherwise is void and named") func aPublisherThatPartitions() async throws {
        let deployment = try await KafkaDeployment()
        guard try await hasPython() else { return }
        _ = try await python(produce("client.id", "astray", names: "astray", sites: 0), deployment)
        let records = try await deployment.dump()
        let astray = records.filter {
            StreamName($0.key)?.partition(of: KafkaDeployment.partitions) != $0.partition
        }
        #expect(records.count == 100 && astray.count > 50)
        try await deployment.settled()
        #expect(try await deployment.voids().values.reduce(0, +) == astray.count)
        let named = deployment.gateway.logger.split(separator: "\n").filter { $0.contains("void record") }
        #expect(named.contains { line in astray.contains { line.contains($0.key) } }, "\(named)")
        let stream = try #require(astray.first).key
        let events = try await deployment.gateway.members("/v1/streams/\(stream)/events")["events"] as? [Any]
        #expect(events?.isEmpty == true)
    }

    // MARK: Python

    private func hasPython() async throws -> Bool {
        try await Shell.has("python3 -c 'import confluent_kafka' 2>&1", "confluent-kafka of Python: make setup-kafka")
    }

    /// Returns a script that publishes 100 valid events, each on a stream of its own.
    private func produce(_ setting: String, _ value: String, names: String, sites: Int) -> String {
        """
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "\(setting)": "\(value)"})
        for i in range(100):
            site = "00000000-0000-4000-8000-%012d" % (\(sites) + i)
            event = '{"base":-1,"id":"0","model":"peer","op":0,"site":"%s","type":"insert"}' % site
            producer.produce(topic, key="\(names)-%d" % i, value=event)
        assert producer.flush(30) == 0
        """
    }

    private func python(_ script: String, _ deployment: KafkaDeployment) async throws -> String {
        let path = deployment.folder.path + "/client.py"
        let head = """
            import confluent_kafka
            bootstrap, topic = "\(deployment.kafka.bootstrap)", "\(deployment.topic)"

            """
        try (head + script).write(toFile: path, atomically: true, encoding: .utf8)
        return try await Shell.output("python3 '\(path)' 2>&1")
    }

    /// Parses lines of partition, offset, key and value.
    private func records(_ printed: String) throws -> [KafkaDeployment.Record] {
        try printed.split(separator: "\n").map { line in
            let words = line.split(separator: " ", maxSplits: 3)
            try #require(words.count == 4, "\(line)")
            return KafkaDeployment.Record(
                partition: try #require(Int(words[0])),
                seq: try #require(Int(words[1])),
                key: String(words[2]),
                value: String(words[3])
            )
        }
    }
}
