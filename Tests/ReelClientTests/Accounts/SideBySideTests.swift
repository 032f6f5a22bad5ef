import Foundation
import ReelCore
import TestSupport
import Testing

@testable import ClientTestSupport
@testable import ReelClient

/// Several accounts and deployments in one process.
@Suite(.timeLimit(.minutes(5))) struct SideBySideTests {
    @Test("clients of different stores, users, tokens and deployments work side by side")
    func independent() async throws {
        let networks = [try FakeNetwork(seed: 1), try FakeNetwork(seed: 2)]
        for (number, network) in networks.enumerated() {
            let tokens = Set(["ann", "bob"].map(FakeNetwork.token))
            try await network.on { network in
                network.tokens = tokens
                network.deployment = Deployment(UInt64(number + 1))
                network.epoch = Epoch(UInt64(number + 1))
            }
        }
        var (paths, clients): ([String], [SyncClient]) = ([], [])
        defer { for path in paths { removeStore(path) } }
        for network in networks {
            for user in ["ann", "bob"] {
                paths.append(temporaryPath())
                let token = FakeNetwork.token(user)
                clients.append(try network.client(store: .file(paths.last!, user: user), token: token))
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, client) in clients.enumerated() {
                group.addTask {
                    let stream = try await client.open("s")
                    for id in 0..<20 { try await stream.publish(.insert("m", id: "\(number)-\(id)")) }
                    try await client.flush(deadline: .seconds(100))
                }
            }
            try await group.waitForAll()
        }
        for (number, client) in clients.enumerated() {
            let stream = try await client.open("s")
            let mates = number < 2 ? ["0", "1"] : ["2", "3"]
            try await eventually { try stream.objects("m").count == 40 }
            let owners = Set(try stream.objects("m").map { String($0.name.id.prefix(1)) })
            #expect(owners.sorted() == mates)
            #expect(client.status.deployment == Deployment(number < 2 ? 1 : 2).description)
        }
        // The end of one does not touch the others.
        #expect(try await clients[0].signOut() == [])
        await clients[3].close()
        let opened = try await clients[1].open("s")
        try await opened.publish(.insert("m", id: "last")).outcome()
        #expect(try opened.objects("m").count == 41)
        #expect(try await clients[2].open("s").objects("m").count == 40)
        #expect(paths.map { FileManager.default.fileExists(atPath: $0) } == [false, true, true, true])
        for client in clients { await client.close() }
    }

    @Test("one store is refused while another client of the process has it open")
    func twice() async throws {
        let network = try FakeNetwork()
        let path = temporaryPath()
        let link = path + "-link"
        defer { for path in [path, link] { removeStore(path) } }
        let client = try network.client(store: .file(path))
        try await client.open("s").publish(.insert("m", id: "1"))
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
        for other in [path, link] {
            let error = #expect(throws: ReelError.self) { try network.client(store: .file(other)) }
            #expect(error?.code == .storeBusy, "\(error!)")
            #expect(throws: ReelError.self) { try SyncClient.adopt(store: other, from: nil, to: "ann") }
        }
        #expect(try await client.open("s").objects("m").count == 1)
        await client.close()
        let next = try network.client(store: .file(path))
        #expect(try await next.open("s").objects("m").count == 1)
        await next.close()
    }

    @Test("a value of one client's stream reads nothing of another client")
    func foreign() async throws {
        let network = try FakeNetwork()
        let (first, second) = (try network.client(seed: 1), try network.client(seed: 2))
        let stream = try await first.open("s")
        try await second.open("s").publish(.insert("m", id: "1")).outcome()
        #expect(throws: ReelError.self) { try second.read([stream]) { $0.count } }
        await first.close()
        await second.close()
    }
}
