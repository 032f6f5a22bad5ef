import Testing

@testable import ReelClient

/// Tests all inputs in all states. A missing state, a repeated state and a missing input are failures too.
@Suite struct StreamSyncTableTests {
    @Test("inputs lead to each state of the table", arguments: StateCase.allCases)
    func reaches(state: StateCase) {
        #expect(StateCase(state.machine()) == state)
    }

    @Test("the table has every kind of input") func hasEveryInput() {
        #expect(Set(InputCase.all.map(\.input.kind)).count == StreamSync.Input.kinds)
        #expect(StreamSyncTable.rows.map(\.input) == InputCase.all.map(\.name))
    }

    @Test("the table has every state once for every input", arguments: StreamSyncTable.rows)
    func hasEveryState(entry: StreamSyncTable.Entry) {
        #expect(entry.rows.flatMap(\.states).sorted() == StateCase.allCases.map(\.rawValue).sorted())
    }

    @Test("each input leads to the next state and the actions of the table", arguments: StreamSyncTable.rows)
    func follows(entry: StreamSyncTable.Entry) throws {
        let input = try #require(InputCase.all.first { $0.name == entry.input })
        for row in entry.rows {
            for name in row.states {
                var machine = try #require(StateCase(rawValue: name)).machine()
                let before = machine.state
                let actions = machine.handle(input.input, input.facts)
                #expect(StateCase(machine).rawValue == row.next ?? name, "in \(name)")
                #expect(actions.map(\.text) == row.actions, "in \(name)")
                if row.next == nil, row.actions.isEmpty { #expect(machine.state == before, "in \(name)") }
            }
        }
    }
}

/// The table. A line without indentation is an input. The lines below it are `states -> next | actions`, and `=` means
/// the same state.
enum StreamSyncTable {
    struct Row: Sendable {
        var states: [String]
        /// Nil: the same state.
        var next: String?
        var actions: [String]
    }

    struct Entry: Sendable, CustomTestStringConvertible {
        var input: String
        var rows: [Row]

        var testDescription: String { input }
    }

    static let rows: [Entry] = {
        var entries: [Entry] = []
        for line in text.split(separator: "\n") {
            guard line.hasPrefix("    ") else {
                entries.append(Entry(input: String(line), rows: []))
                continue
            }
            guard let match = line.wholeMatch(of: #/ {4}(.+) -> ([a-zA-Z=]+)(?: \| (.+))?/#) else {
                entries.append(Entry(input: "not a row: \(line)", rows: []))
                continue
            }
            let actions = match.3.map { $0.split(separator: "; ").map(String.init) } ?? []
            let next = match.2 == "=" ? nil : String(match.2)
            let row = Row(states: match.1.split(separator: " ").map(String.init), next: next, actions: actions)
            entries[entries.count - 1].rows.append(row)
        }
        return entries
    }()

    private static let text = """
        opened
            idle -> loading | load(delta from connection); start(answer 3000)
            loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded subscribing -> =
            live fetching jumping landing waiting polled resting asking current offline retrying -> =
            awayRetrying failed -> =
            awayFailed -> =
        opened offline
            idle -> awayLoading | load(delta from connection); start(answer 3000)
            loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded subscribing -> =
            live fetching jumping landing waiting polled resting asking current offline retrying -> =
            awayRetrying failed -> =
            awayFailed -> =
        closed
            loading checking arriving awayLoading awayChecking awayArriving jumping -> idle | cancelLoad; cancel(answer)
            installing awayLoaded landing -> idle | discardLoaded
            subscribing live offline failed awayFailed -> idle
            fetching -> idle | cancelFetch; cancel(answer)
            waiting retrying awayRetrying -> idle | cancel(retry)
            polled resting current -> idle | cancel(poll)
            asking -> idle | cancelPoll; cancel(answer)
            idle -> =
        connection opened
            awayLoading -> loading | cancelLoad; cancel(answer); load(delta from connection); start(answer 3000)
            awayChecking -> loading | cancelLoad; cancel(answer); load(delta from connection); start(answer 3000)
            awayArriving -> arriving
            awayLoaded -> installing | install(beginning)
            offline -> subscribing | subscribe(afterState)
            awayRetrying -> loading | cancel(retry); load(delta from connection); start(answer 3000)
            awayFailed -> subscribing | resume; subscribe(afterState)
            idle loading checking arriving installing subscribing live fetching jumping landing waiting -> =
            polled resting asking current retrying failed -> =
        connection opened, no place
            awayLoading -> loading | cancelLoad; cancel(answer); load(delta from connection); start(answer 3000)
            awayChecking -> loading | cancelLoad; cancel(answer); load(delta from connection); start(answer 3000)
            awayArriving -> arriving
            awayLoaded -> installing | install(beginning)
            offline -> polled | notify(noPlace, new); start(poll 0)
            awayRetrying -> loading | cancel(retry); load(delta from connection); start(answer 3000)
            awayFailed -> polled | resume; notify(noPlace, new); start(poll 0)
            idle loading checking arriving installing subscribing live fetching jumping landing waiting -> =
            polled resting asking current retrying failed -> =
        connection lost
            loading jumping -> awayLoading
            arriving -> awayArriving
            installing landing -> awayLoaded
            subscribing live -> offline
            fetching -> offline | cancelFetch; cancel(answer)
            waiting retrying awayRetrying -> offline | cancel(retry)
            polled resting current -> offline | cancel(poll)
            asking -> offline | cancelPoll; cancel(answer)
            failed -> awayFailed
            checking -> awayChecking
            idle awayLoading awayChecking awayArriving awayLoaded offline awayFailed -> =
        place given
            polled current -> subscribing | cancel(poll); subscribe(afterState)
            asking -> subscribing | cancelPoll; cancel(answer); subscribe(afterState)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            resting subscribing live fetching jumping landing waiting offline retrying awayRetrying -> =
            failed awayFailed -> =
        place taken
            subscribing live -> polled | unsubscribe; notify(noPlace, new); start(poll 0)
            fetching -> polled | unsubscribe; cancelFetch; cancel(answer); notify(noPlace, new); start(poll 0)
            jumping -> loading | unsubscribe
            landing -> installing | unsubscribe
            waiting -> polled | unsubscribe; cancel(retry); notify(noPlace, new); start(poll 0)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            polled resting -> =
            asking current offline retrying awayRetrying failed awayFailed -> =
        token changed
            failed -> subscribing | resume; subscribe(afterState)
            awayFailed -> offline | resume
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live fetching jumping landing waiting polled resting asking current offline retrying -> =
            awayRetrying -> =
        epoch changed
            awayLoading awayChecking awayArriving -> offline | cancelLoad; cancel(answer)
            awayRetrying -> offline | cancel(retry)
            awayFailed -> offline | resume
            idle loading checking arriving installing awayLoaded subscribing live fetching jumping landing -> =
            waiting polled resting asking current offline retrying failed -> =
        state dropped
            awayLoading awayChecking awayArriving -> offline | cancelLoad; cancel(answer)
            awayRetrying -> offline | cancel(retry)
            awayFailed -> offline | resume
            idle loading checking arriving installing awayLoaded subscribing live fetching jumping landing -> =
            waiting polled resting asking current offline retrying failed -> =
        subscribed
            subscribing -> live | notify(live)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded live -> =
            fetching jumping landing waiting polled resting asking current offline retrying awayRetrying failed -> =
            awayFailed -> =
        lagged
            live -> subscribing | subscribe(afterState)
            fetching -> subscribing | cancelFetch; cancel(answer); subscribe(afterState)
            jumping -> loading
            landing -> installing
            waiting -> subscribing | cancel(retry); subscribe(afterState)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing polled resting asking current offline retrying awayRetrying failed awayFailed -> =
        behind
            live -> loading | unsubscribe; load(delta from connection); start(answer 3000)
            fetching -> loading | unsubscribe; cancelFetch; cancel(answer); load(delta from connection); \
        start(answer 3000)
            jumping -> loading | unsubscribe
            landing -> installing | unsubscribe
            waiting -> loading | unsubscribe; cancel(retry); load(delta from connection); start(answer 3000)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing polled resting asking current offline retrying awayRetrying failed awayFailed -> =
        proven, nothing missing
            fetching -> live | cancelFetch; cancel(answer)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live jumping landing waiting polled resting asking current offline retrying awayRetrying -> =
            failed awayFailed -> =
        proven, seqs missing
            live -> fetching | start(answer 3000); fetch([11…12] from connection)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing fetching jumping landing waiting polled resting asking current offline -> =
            retrying awayRetrying -> =
            failed awayFailed -> =
        piece of a fetch on the connection
            live -> fetching | start(answer 3000); fetch([11…12] from connection)
            fetching -> = | start(answer 3000)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing jumping landing waiting polled resting asking current offline retrying awayRetrying failed -> =
            awayFailed -> =
        folded
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live fetching jumping landing waiting polled resting asking current offline retrying -> =
            awayRetrying failed awayFailed -> =
        subscription ended: overloaded
            loading checking arriving installing polled resting asking -> = | notify(notSubscribed overloaded)
            current retrying -> = | notify(notSubscribed overloaded)
            subscribing live -> retrying | notify(notSubscribed overloaded); start(retry 700)
            fetching -> retrying | notify(notSubscribed overloaded); cancelFetch; cancel(answer); start(retry 700)
            jumping -> loading | notify(notSubscribed overloaded)
            landing -> installing | notify(notSubscribed overloaded)
            waiting -> retrying | notify(notSubscribed overloaded); cancel(retry); start(retry 700)
            idle awayLoading awayChecking awayArriving awayLoaded offline awayRetrying failed awayFailed -> =
        subscribe refused: overloaded
            loading checking arriving installing live fetching jumping landing -> = | notify(notSubscribed overloaded)
            waiting polled resting asking current retrying -> = | notify(notSubscribed overloaded)
            subscribing -> retrying | notify(notSubscribed overloaded); start(retry 700)
            idle awayLoading awayChecking awayArriving awayLoaded offline awayRetrying failed awayFailed -> =
        subscribe refused: truncated
            subscribing -> retrying | start(retry 50)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded live -> =
            fetching jumping landing waiting polled resting asking current offline retrying awayRetrying failed -> =
            awayFailed -> =
        subscribe refused: limit
            loading -> = | notify(notSubscribed limit)
            checking -> = | notify(notSubscribed limit)
            arriving -> = | notify(notSubscribed limit)
            installing -> = | notify(notSubscribed limit)
            live -> = | notify(notSubscribed limit)
            fetching -> = | notify(notSubscribed limit)
            jumping -> = | notify(notSubscribed limit)
            landing -> = | notify(notSubscribed limit)
            waiting -> = | notify(notSubscribed limit)
            polled resting asking current retrying -> = | notify(notSubscribed limit)
            subscribing -> polled | notify(notSubscribed limit); notify(noPlace, new); start(poll 0)
            idle awayLoading awayChecking awayArriving awayLoaded offline awayRetrying failed awayFailed -> =
        subscribe refused: forbidden
            loading checking -> failed | notify(notSubscribed forbidden); cancelLoad; cancel(answer); stop(forbidden)
            arriving -> failed | notify(notSubscribed forbidden); cancelLoad; cancel(answer); stop(forbidden)
            jumping -> failed | notify(notSubscribed forbidden); cancelLoad; cancel(answer); stop(forbidden)
            installing landing -> failed | notify(notSubscribed forbidden); discardLoaded; stop(forbidden)
            subscribing live -> failed | notify(notSubscribed forbidden); stop(forbidden)
            fetching -> failed | notify(notSubscribed forbidden); cancelFetch; cancel(answer); stop(forbidden)
            waiting retrying -> failed | notify(notSubscribed forbidden); cancel(retry); stop(forbidden)
            polled resting current -> failed | notify(notSubscribed forbidden); cancel(poll); stop(forbidden)
            asking -> failed | notify(notSubscribed forbidden); cancelPoll; cancel(answer); stop(forbidden)
            idle awayLoading awayChecking awayArriving awayLoaded offline awayRetrying failed awayFailed -> =
        subscribe refused: diverged
            loading jumping -> awayLoading | notify(notSubscribed diverged); leaveNode(diverged)
            arriving -> awayArriving | notify(notSubscribed diverged); leaveNode(diverged)
            installing landing -> awayLoaded | notify(notSubscribed diverged); leaveNode(diverged)
            subscribing live -> offline | notify(notSubscribed diverged); leaveNode(diverged)
            fetching -> offline | notify(notSubscribed diverged); cancelFetch; cancel(answer); leaveNode(diverged)
            waiting retrying -> offline | notify(notSubscribed diverged); cancel(retry); leaveNode(diverged)
            polled resting current -> offline | notify(notSubscribed diverged); cancel(poll); leaveNode(diverged)
            asking -> offline | notify(notSubscribed diverged); cancelPoll; cancel(answer); leaveNode(diverged)
            checking -> awayChecking | notify(notSubscribed diverged); leaveNode(diverged)
            idle awayLoading awayChecking awayArriving awayLoaded offline awayRetrying failed awayFailed -> =
        subscribe refused: epoch changed
            loading jumping -> awayLoading | leaveNode(epoch_changed)
            arriving -> awayArriving | leaveNode(epoch_changed)
            installing landing -> awayLoaded | leaveNode(epoch_changed)
            subscribing live -> offline | leaveNode(epoch_changed)
            fetching -> offline | cancelFetch; cancel(answer); leaveNode(epoch_changed)
            waiting retrying -> offline | cancel(retry); leaveNode(epoch_changed)
            polled resting current -> offline | cancel(poll); leaveNode(epoch_changed)
            asking -> offline | cancelPoll; cancel(answer); leaveNode(epoch_changed)
            checking -> awayChecking | leaveNode(epoch_changed)
            idle awayLoading awayChecking awayArriving awayLoaded offline awayRetrying failed awayFailed -> =
        fetch refused: overloaded
            fetching -> waiting | cancel(answer); start(retry 700)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live jumping landing waiting polled resting asking current offline retrying awayRetrying -> =
            failed awayFailed -> =
        another request refused: overloaded
            subscribing -> retrying | start(retry 700)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded live -> =
            fetching jumping landing waiting polled resting asking current offline retrying awayRetrying failed -> =
            awayFailed -> =
        unreadable
            loading checking -> failed | notify(notSubscribed newer_log); cancelLoad; cancel(answer); stop(newer_log)
            arriving -> failed | notify(notSubscribed newer_log); cancelLoad; cancel(answer); stop(newer_log)
            jumping -> failed | notify(notSubscribed newer_log); unsubscribe; cancelLoad; cancel(answer); \
        stop(newer_log)
            installing -> failed | notify(notSubscribed newer_log); discardLoaded; stop(newer_log)
            landing -> failed | notify(notSubscribed newer_log); unsubscribe; discardLoaded; stop(newer_log)
            awayLoading -> awayFailed | notify(notSubscribed newer_log); cancelLoad; cancel(answer); stop(newer_log)
            awayChecking -> awayFailed | notify(notSubscribed newer_log); cancelLoad; cancel(answer); stop(newer_log)
            awayArriving -> awayFailed | notify(notSubscribed newer_log); cancelLoad; cancel(answer); stop(newer_log)
            awayLoaded -> awayFailed | notify(notSubscribed newer_log); discardLoaded; stop(newer_log)
            subscribing -> failed | notify(notSubscribed newer_log); stop(newer_log)
            live -> failed | notify(notSubscribed newer_log); unsubscribe; stop(newer_log)
            fetching -> failed | notify(notSubscribed newer_log); unsubscribe; cancelFetch; cancel(answer); \
        stop(newer_log)
            waiting -> failed | notify(notSubscribed newer_log); unsubscribe; cancel(retry); stop(newer_log)
            retrying -> failed | notify(notSubscribed newer_log); cancel(retry); stop(newer_log)
            polled resting current -> failed | notify(notSubscribed newer_log); cancel(poll); stop(newer_log)
            asking -> failed | notify(notSubscribed newer_log); cancelPoll; cancel(answer); stop(newer_log)
            offline -> awayFailed | notify(notSubscribed newer_log); stop(newer_log)
            awayRetrying -> awayFailed | notify(notSubscribed newer_log); cancel(retry); stop(newer_log)
            idle failed awayFailed -> =
        piece of a load
            loading -> arriving | start(answer 3000)
            arriving awayArriving jumping -> = | start(answer 3000)
            awayLoading -> awayArriving | start(answer 3000)
            checking awayChecking -> = | start(answer 3000)
            idle installing awayLoaded subscribing live fetching landing waiting polled resting asking current -> =
            offline retrying awayRetrying failed awayFailed -> =
        piece of a fetch by HTTP
            fetching -> = | start(answer 3000)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live jumping landing waiting polled resting asking current offline retrying awayRetrying -> =
            failed awayFailed -> =
        piece of a poll
            asking -> = | start(answer 3000)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live fetching jumping landing waiting polled resting current offline retrying awayRetrying -> =
            failed awayFailed -> =
        load finished
            loading arriving -> installing | cancel(answer); notify(loaded); install(beginning)
            awayLoading awayArriving -> awayLoaded | cancel(answer); notify(loaded)
            jumping -> landing | cancel(answer); notify(loaded); install(events)
            idle checking installing awayChecking awayLoaded subscribing live fetching landing waiting -> =
            polled resting -> =
            asking current offline retrying awayRetrying failed awayFailed -> =
        load finished, short delta
            loading arriving -> installing | cancel(answer); notify(loaded); install(beginning)
            awayLoading awayArriving -> awayLoaded | cancel(answer); notify(loaded)
            jumping -> landing | cancel(answer); notify(loaded); install(events)
            idle checking installing awayChecking awayLoaded subscribing live fetching landing waiting -> =
            polled resting -> =
            asking current offline retrying awayRetrying failed awayFailed -> =
        load finished, other log
            loading arriving -> retrying | cancel(answer); notify(loaded); discardLoaded; start(retry 500)
            awayLoading awayArriving -> awayLoaded | cancel(answer); notify(loaded)
            jumping -> waiting | cancel(answer); notify(loaded); discardLoaded; start(retry 500)
            idle checking installing awayChecking awayLoaded subscribing live fetching landing waiting -> =
            polled resting -> =
            asking current offline retrying awayRetrying failed awayFailed -> =
        installed
            installing -> subscribing | subscribe(afterState)
            landing -> live
            idle loading checking arriving awayLoading awayChecking awayArriving awayLoaded subscribing live -> =
            fetching jumping waiting polled resting asking current offline retrying awayRetrying failed awayFailed -> =
        load failed
            loading checking arriving -> retrying | cancel(answer); notify(noState log_unavailable); start(retry 20)
            awayLoading awayChecking awayArriving -> awayRetrying | cancel(answer); start(retry 20)
            jumping -> waiting | cancel(answer); notify(noState log_unavailable); start(retry 20)
            idle installing awayLoaded subscribing live fetching landing waiting polled resting asking current -> =
            offline retrying awayRetrying failed awayFailed -> =
        digest is the same
            checking -> subscribing | cancel(answer); notify(loaded); subscribe(afterState)
            awayChecking -> offline | cancel(answer); notify(loaded)
            idle loading arriving installing awayLoading awayArriving awayLoaded subscribing live fetching -> =
            jumping landing waiting polled resting asking current offline retrying awayRetrying failed awayFailed -> =
        digest is another one
            checking -> loading | load(delta from connection); start(answer 3000)
            awayChecking -> awayLoading | load(delta from connection); start(answer 3000)
            idle loading arriving installing awayLoading awayArriving awayLoaded subscribing live fetching -> =
            jumping landing waiting polled resting asking current offline retrying awayRetrying failed awayFailed -> =
        digest is behind
            checking -> subscribing | cancel(answer); subscribe(afterState)
            awayChecking -> offline | cancel(answer)
            idle loading arriving installing awayLoading awayArriving awayLoaded subscribing live fetching -> =
            jumping landing waiting polled resting asking current offline retrying awayRetrying failed awayFailed -> =
        fetch answered
            fetching -> live | cancel(answer)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live jumping landing waiting polled resting asking current offline retrying awayRetrying -> =
            failed awayFailed -> =
        fetch failed
            fetching -> waiting | cancel(answer); start(retry 50)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live jumping landing waiting polled resting asking current offline retrying awayRetrying -> =
            failed awayFailed -> =
        fetch postponed
            fetching -> waiting | cancel(answer); start(retry 100)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live jumping landing waiting polled resting asking current offline retrying awayRetrying -> =
            failed awayFailed -> =
        poll answered
            asking -> current | cancel(answer); notify(polled); start(poll 30000)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live fetching jumping landing waiting polled resting current offline retrying awayRetrying -> =
            failed awayFailed -> =
        poll answered, more to read
            asking -> polled | cancel(answer); start(poll 0)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live fetching jumping landing waiting polled resting current offline retrying awayRetrying -> =
            failed awayFailed -> =
        poll failed
            asking -> retrying | cancel(answer); start(retry 400)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live fetching jumping landing waiting polled resting current offline retrying awayRetrying -> =
            failed awayFailed -> =
        poll failed: forbidden
            asking -> failed | cancel(answer); notify(notSubscribed forbidden); stop(forbidden)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live fetching jumping landing waiting polled resting current offline retrying awayRetrying -> =
            failed awayFailed -> =
        event queued
            polled current -> = | start(poll 500)
            resting -> = | start(poll 1000)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live fetching jumping landing waiting asking offline retrying awayRetrying failed -> =
            awayFailed -> =
        queue moved
            polled current -> = | start(poll 200)
            resting -> = | start(poll 1000)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live fetching jumping landing waiting asking offline retrying awayRetrying failed -> =
            awayFailed -> =
        turn ended
            current -> polled
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live fetching jumping landing waiting polled resting asking offline retrying awayRetrying -> =
            failed awayFailed -> =
        timer retry
            waiting -> fetching | start(answer 6000); fetch([11…12] from connection)
            retrying -> subscribing | subscribe(afterState)
            awayRetrying -> awayLoading | load(delta from peer); start(answer 6000)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live fetching jumping landing polled resting asking current offline failed awayFailed -> =
        timer answer
            loading checking -> retrying | cancelLoad; cancel(answer); notify(noState log_unavailable); start(retry 20)
            arriving -> retrying | cancelLoad; cancel(answer); notify(noState log_unavailable); start(retry 20)
            awayLoading awayChecking awayArriving -> awayRetrying | cancelLoad; cancel(answer); start(retry 20)
            fetching -> = | cancelFetch; start(answer 6000); fetch([11…12] from connection)
            jumping -> waiting | cancelLoad; cancel(answer); notify(noState log_unavailable); start(retry 20)
            asking -> retrying | cancelPoll; cancel(answer); start(retry 400)
            idle installing awayLoaded subscribing live landing waiting polled resting current offline retrying -> =
            awayRetrying failed awayFailed -> =
        timer poll
            polled current -> asking | poll; start(answer 3000)
            resting -> loading | cancel(poll); load(delta from connection); start(answer 3000)
            idle loading checking arriving installing awayLoading awayChecking awayArriving awayLoaded -> =
            subscribing live fetching jumping landing waiting asking offline retrying awayRetrying failed -> =
            awayFailed -> =
        """
}
