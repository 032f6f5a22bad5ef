import Foundation
import ReelCore

@testable import ReelClient

// Users of a device, and what becomes of their stores.
extension SimulatedDevice {
    // MARK: Users

    /// The user gets another name, which the store learns before it is opened again.
    func rename() {
        if FileManager.default.fileExists(atPath: path) { nextName = newName() }
    }

    func newName() -> String { "\(name)-\(newFile())" }

    /// Gives the store to the user's new name, as an app does before it opens it.
    func takeName() {
        guard let name = nextName else { return }
        nextName = nil
        do {
            world.trace(self.name, "\(account.user) is now \(name)")
            try SyncClient.adopt(store: path, from: account.user, to: name)
            account.user = name
            world.evidence.renamed.insert(self.name)
        } catch {
            world.broken("\(self.name) could not give its store to \(name): \(error)")
        }
    }

    /// Another user takes the device, with a store of its own: one that was here before, or a new one.
    func switchAccount() {
        guard client != nil, !isStoreRemoved else { return }
        kill(tellsGateways: true)
        let former = account
        if !parked.isEmpty, process.chance(60) {
            use(parked.removeFirst())
        } else {
            use(Account(user: newName(), file: newFile()))
        }
        parked.append(former)
        world.trace(name, "is used by \(account.user) now")
        world.restartLater(self)
    }

    /// All was healed, and the present user's queue is empty: the next one's may not be.
    func takeUpAccount() {
        guard let next = parked.first, isQueueNotDone == nil else { return }
        parked.removeFirst()
        observe()
        kill(tellsGateways: true)
        use(next)
        world.trace(name, "is used by \(account.user) again")
        restart()
    }

    /// The user deletes the account on the device; another one begins with an empty store.
    func eraseAccount() {
        guard let client, !isStoreRemoved, !isErasing else { return }
        isErasing = true
        let (process, seconds) = (process, Int(process.pick(1...20)))
        world.trace(name, "erases the account of \(account.user)")
        Task(executorPreference: process) { [self] in
            do {
                let staying = try await client.erase(discardsQueue: true, withinSeconds: seconds)
                world.trace(name, "has erased it, sites stay in \(staying)")
            } catch let error as ReelError where error.message == "killed" {
                // The store is as it was, but for the end of its sites.
                return
            } catch {
                return world.broken("\(name) could not erase its store: \(error)")
            }
            world.lostStore(name)
            isErased = true
            process.after(0) { [self] in
                kill(tellsGateways: true)
                world.restartLater(self)
            }
        }
    }

    // MARK: Lost stores

    /// The files of the store are deleted, under the running client or while there is none.
    func removeStore() {
        guard !isErasing else { return }
        world.trace(name, "loses its store")
        world.lostStore(name)
        for ending in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + ending) }
        if client == nil { forgetStore() } else { isStoreRemoved = true }
    }

    /// The client has found that its store is gone: the app begins with an empty one.
    func beginWithoutStore() {
        guard isStoreRemoved, client != nil else { return }
        kill(tellsGateways: true)
        world.restartLater(self)
    }
}
