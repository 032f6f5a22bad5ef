import ReelClient
import ReelStorageConformance
import Testing

/// The suite finds faulty storages and names the fault.
@Suite(.serialized, .timeLimit(.minutes(10))) struct FaultyStorageTests {
    @Test("the suite finds the fault of a storage and names it", arguments: FaultyStorage.Fault.allCases)
    func findsTheFault(fault: FaultyStorage.Fault) async throws {
        let suite = StorageConformance(
            name: "FaultyStorage",
            deadline: fault.stalls ? .seconds(15) : .seconds(120),
            make: { FaultyStorage(fault) },
            reopen: { try ($0 as! FaultyStorage).reopened() },
            crash: { try ($0 as! FaultyStorage).crashed() }
        )
        let error = await #expect(throws: StorageFault.self) { try await suite.run() }
        let text = error?.description ?? ""
        #expect(fault.signs.contains { text.contains($0) }, "\(text)")
    }
}

extension FaultyStorage.Fault {
    var stalls: Bool { signs.contains { $0.hasPrefix(Self.stalled) } }

    private static let stalled = "did not return within 15.0 seconds from: "

    /// Parts of messages that name the fault. A message must contain one of them.
    var signs: [String] {
        switch self {
        case .losesAWrite: ["after 20 puts: found the pair"]
        case .losesTheEmptyValue: ["found no pair", "after a put of 0 bytes"]
        case .cutsLargeValues: ["after a put of 1048576 bytes"]
        case .forgetsTheLastKeyByte: ["found the pair"]
        case .tearsACommit: ["commits in one snapshot", "pairs, expected 40"]
        case .throwsInTheMiddle: ["commit threw: the middle (store_failed)"]
        case .appliesRemovesLast: ["after the commit “remove, put”"]
        case .keepsTheFirstPut: ["after the commit “put, put again”"]
        case .swallowsRemoveRange: ["after the commit “put, removeRange”"]
        case .removeRangeTakesItsEnd: ["after the commit “put, removeRange”"]
        case .removeRangeClearsAll: ["after the commit “put, removeRange", "after the commit “removeRange"]
        case .laterStateInASnapshot: ["after a later put"]
        case .snapshotBeginsAtItsFirstRead: ["at the first read, after many later commits"]
        case .snapshotOfAnEarlierCommit: ["after 20 puts: found"]
        case .signedOrder, .longestKeyLast: ["found the pair <", "expected <"]
        case .rangeHoldsItsEnd: ["in the range from"]
        case .rangeLeavesOutItsStart: ["after 20 puts: found the pair <00>"]
        case .ignoresTheBodysFalse: ["calls of the body, expected 1"]
        case .swallowsTheBodysError: ["found no error, expected the body's"]
        case .losesAConcurrentCommit: ["pairs of 240"]
        case .snapshotWaitsForACommit: ["in 5 of 5 large commits a snapshot took"]
        case .commitStalls: [Self.stalled + "commit"]
        case .forEachStalls: [Self.stalled + "forEach"]
        case .closeStalls: [Self.stalled + "close"]
        case .worksAfterClose: ["after close: snapshot threw nothing, expected closed"]
        case .otherErrorAfterClose: ["after close: snapshot threw the storage is closed (internal), expected closed"]
        case .eraseThrows: ["erase threw: no erase", "erase threw no erase"]
        case .worksAfterErase: ["after erase: snapshot threw nothing, expected closed"]
        case .forgetsAtClose, .forgetsTheLastCommitAtClose: ["reopened after commit", "at start 2"]
        case .keepsWhatWasErased: ["after erase and a new start: found the pair"]
        case .staysLockedAfterClose: ["the storage is open (store_busy)"]
        case .losesADurableCommitInACrash: ["or a later one"]
        case .keepsACommitAfterALostOne: ["found a content that no commit of", "or a later one"]
        }
    }
}
