import Foundation
import NodeTestSupport
import ReelLab
import ReelNet
import TestSupport
import Testing

/// Tests nodes, as processes, with a separate port for the operator.
@Suite(.timeLimit(.minutes(10))) struct AdminListenTests {
    @Test("cluster and doctor ask at the operator's port of one node, and find those of the others")
    func commands() async throws {
        let folder = try TemporaryFolder(prefix: "reel-admin-")
        let (first, second) = (try HeldPort(), try HeldPort())
        let log = ["--log", "sqlite:\(folder.path)/log.sqlite"]
        let gateway = try NodeProcess(
            ["gateway", "--admin-listen", "127.0.0.1:\(first.number)"] + log,
            in: folder,
            name: "gateway"
        )
        let snapshot = try NodeProcess(
            ["snapshot", "--data", folder.path + "/state", "--admin-listen", "127.0.0.1:\(second.number)"] + log,
            in: folder,
            name: "snapshot"
        )
        for node in [gateway, snapshot] {
            try await node.becomesReady()
            for target in ["/metrics", "/v1/cluster"] {
                #expect(try await node.ask("GET", target).status == 404, "\(node.name) \(target)")
            }
        }
        let admin = ["--url", "http://127.0.0.1:\(first.number)"]
        try await eventually("the cluster is shown") {
            let run = try await BuiltProgram.run(["cluster"] + admin)
            return run.code == 0 && run.output.contains(gateway.url) && run.output.contains(snapshot.url)
        }
        let event = #"{"type":"insert","model":"task","id":"1","fields":{}}"#
        #expect(try await BuiltProgram.run(["publish", "todo", event, "--url", gateway.url]).code == 0)
        var run = try await BuiltProgram.run(["doctor", "--stream", "todo"] + admin)
        for _ in 0..<20 where run.code != 0 {
            run = try await BuiltProgram.run(["doctor", "--stream", "todo"] + admin)
        }
        #expect(run.code == 0 && run.output.contains("1 gateway and 1 snapshot node answer"), "\(run)")
        #expect(!run.output.contains("metrics") && !run.output.contains("no node announces"), "\(run)")

        let outside = try await BuiltProgram.run(["doctor", "--url", gateway.url, "--stream", "todo"])
        #expect(outside.code == 1, "\(outside)")
        #expect(outside.output.contains("the state of todo was read from \(gateway.url) only"), "\(outside)")
        #expect(outside.output.contains("todo at seq 0 of partition"), "\(outside)")
        #expect(outside.output.contains("Name its operator's port (--admin-listen) with --url."), "\(outside)")
        #expect(outside.output.contains("Name the node's operator's port (--admin-listen) with --url"), "\(outside)")
        #expect(outside.output.contains("does not show its metrics"), "\(outside)")
        let cluster = try await BuiltProgram.run(["cluster", "--url", gateway.url])
        #expect(cluster.code == 1 && cluster.errors.contains("only on the operator's port"), "\(cluster)")
        #expect(cluster.errors.contains("name the operator's port of the node with --url, or the log"), "\(cluster)")
        #expect(try await BuiltProgram.run(["ready"] + admin).code == 0)
        withExtendedLifetime((first, second)) {}
    }

    @Test("an operator's port in use is an error at the start that names it, and no log is made")
    func inUse() async throws {
        let folder = try TemporaryFolder(prefix: "reel-admin-")
        let other = try NodeProcess.serve(in: folder)
        let words = ["--data", folder.path + "/second", "--listen", "127.0.0.1:0"]
        for command in ["serve", "gateway", "snapshot"] {
            let run = try await BuiltProgram.run([command, "--admin-listen", "127.0.0.1:\(other.port)"] + words)
            #expect(run.code == 1, "\(run)")
            #expect(run.errors.contains("--admin-listen: listening on 127.0.0.1:\(other.port): "), "\(run)")
            #expect(run.errors.contains("end the process that listens there, or name another port"), "\(run)")
        }
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/second/log.sqlite"))
    }

    @Test(
        "an operator's port that cannot be meant is refused at the start",
        arguments: [
            ("0.0.0.0:0", "--admin-listen 0.0.0.0:0 is open to other machines, and without --jwks"),
            ("nowhere", "--admin-listen is `nowhere`; expected is HOST:PORT"),
            ("name.example:1", "--admin-listen is `name.example:1`; expected is an IPv4 or IPv6 address"),
            ("127.0.0.1:17350", "--admin-listen is `127.0.0.1:17350`, which is the address of --listen"),
        ]
    )
    func refused(place: String, said: String) async throws {
        let folder = try TemporaryFolder(prefix: "reel-admin-")
        let words = ["serve", "--data", folder.path, "--listen", "127.0.0.1:17350", "--admin-listen", place]
        let run = try await BuiltProgram.run(words)
        #expect(run.code == 2 && run.errors.contains(said), "\(run)")
    }

    @Test("beyond the loopback the operator's port speaks TLS as the node does, on the loopback plain HTTP")
    func tls() async throws {
        let folder = try TemporaryFolder(prefix: "reel-admin-")
        let path = folder.path
        _ = try await Shell.output(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=node "
                + "-addext subjectAltName=IP:127.0.0.1 -keyout '\(path)/key' -out '\(path)/cert' 2>&1"
        )
        try await BuiltProgram.run(["token", "keygen"]).output.write(
            toFile: path + "/keys",
            atomically: true,
            encoding: .utf8
        )
        func token(_ words: String...) async throws -> String {
            let made = try await BuiltProgram.run(["token", "issue", "--jwks", path + "/keys", "--sub", "ann"] + words)
            return made.output.trimmingCharacters(in: .newlines)
        }
        let words = ["serve", "--data", path + "/data", "--jwks", path + "/keys"]
        let tls = ["--tls-cert", path + "/cert", "--tls-key", path + "/key"]
        let (outer, inner) = (try HeldPort(), try HeldPort())
        let beyond = words + tls + ["--admin-listen", "0.0.0.0:\(outer.number)"]
        var node = try NodeProcess(beyond, in: folder, name: "beyond")
        let place = ["cluster", "--url", "https://127.0.0.1:\(outer.number)", "--ca", path + "/cert", "--token"]
        let reader = try await BuiltProgram.run(place + [try await token("--read", "*")])
        #expect(reader.code == 1 && reader.errors.contains("the right `admin`"), "\(reader)")
        #expect(reader.errors.contains("give a token with the right"), "\(reader)")
        let admin = try await BuiltProgram.run(place + [try await token("--admin", "*")])
        #expect(admin.code == 0, "\(admin)")
        node.process.killNow()
        let local = words + tls + ["--admin-listen", "127.0.0.1:\(inner.number)"]
        node = try NodeProcess(local, in: folder, name: "local")
        #expect(try await BuiltProgram.run(["cluster", "--url", "http://127.0.0.1:\(inner.number)"]).code == 0)
        #expect(node.logger.contains(#"event="the key file has a secret half""#), "\(node.logger)")
        #expect(node.logger.contains(#"event="listening for the operator" address=127.0.0.1:\#(inner.number)"#))
        withExtendedLifetime((outer, inner)) {}
    }

    @Test("a node that moves to the next epoch keeps its operator's port")
    func nextEpoch() async throws {
        let folder = try TemporaryFolder(prefix: "reel-admin-")
        let admin = try HeldPort()
        let words = ["serve", "--data", folder.path + "/data", "--admin-listen", "127.0.0.1:\(admin.number)"]
        let node = try NodeProcess(words, in: folder)
        func epoch() async throws -> String {
            let answer = try await Asker.ask("GET", port: admin.number, "/v1/cluster", body: "")
            return String(decoding: answer.body.prefix(40), as: UTF8.self)
        }
        let before = try await epoch()
        let run = try await BuiltProgram.run(["epoch", "new", "--data", folder.path + "/data"])
        #expect(run.code == 0, "\(run)")
        #expect(run.errors.contains(#"level=audit event="operator command" command="epoch new" user="#), "\(run)")
        try await eventually("the next epoch") { (try? await epoch()).map { $0 != before } ?? false }
        withExtendedLifetime(node) {}
    }
}
