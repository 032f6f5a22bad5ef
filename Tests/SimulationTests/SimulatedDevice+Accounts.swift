import Foundation
import ReelCore

@testable import ReelClient

// The users of a device and their stores.
extension SimulatedDevice {
    // MARK: Users

    /// Gives the user another name. The store learns the name before it is opened again.
    func rename() {
        if FileManager.default.fileExists(atPath: path), !isStoreEmpty { nextName = newName() }
    }

    func newName() -> String { "\(name)-\(newFile())" }

    /// Gives the store to the user's new name, as an app does before it opens the store.
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

    /// Changes the user of the device. The next user has a store of its own, a former or a new one.
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

    /// Changes to the next user after healing. The queue of the present user is empty, and
    /// that of the next user may not be.
    func takeUpAccount() {
        guard let next = parked.first, isQueueNotDone == nil else { return }
        parked.removeFirst()
        observe()
        kill(tellsGateways: true)
        use(next)
        world.trace(name, "is used by \(account.user) again")
        restart()
    }

    /// Deletes the account on the device. Another account begins with an empty store.
    func eraseAccount() {
        guard let client, !isStoreRemoved, !isErasing else { return }
        isErasing = true
        let (process, seconds) = (process, Int(process.pick(1...20)))
        world.trace(name, "erases the account of \(account.user)")
        Task(executorPreference: process) { [self] in
            do {
                let staying = try await client.signOut(ifWaiting: .erase, deadline: .seconds(seconds))
                world.trace(name, "has erased it, sites stay in \(staying)")
            } catch let error as ReelError where error.message == "killed" {
                // The store is unchanged, or empty for the next client.
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

    /// Deletes the files of the store, while the client runs or not.
    func removeStore() {
        guard !isErasing else { return }
        world.trace(name, "loses its store")
        world.lostStore(name)
        for ending in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + ending) }
        if client == nil { forgetStore() } else { isStoreRemoved = true }
    }

    /// Restarts the device with an empty store, since the client has found that its store is gone.
    func beginWithoutStore() {
        guard isStoreRemoved, client != nil else { return }
        kill(tellsGateways: true)
        world.restartLater(self)
    }
}
