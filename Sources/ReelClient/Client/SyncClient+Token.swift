internal import ReelCore

// The token by which nodes that have keys identify the device.
extension SyncClient {
    /// The timeout of `renewToken`.
    static let tokenMs: Int64 = 30_000

    /// A call of `renewToken` that has not returned yet.
    struct TokenQuestion {
        let number: Int
        let task: Task<Void, Never>
        let deadline: any TransportHandle
    }

    /// Sends `hello` as soon as there is a token.
    func enter() {
        guard renewToken != nil, token == nil else { return sayHello() }
        link?.awaitsToken = true
        askForToken()
    }

    private func sayHello() {
        link?.awaitsToken = false
        send(ClientFrame(.hello(.init(client: Self.name, token: token, takesNodes: true))))
    }

    /// Called when a node has refused the token. The client asks the app for another one before it sends anything more.
    /// If the connection still has an earlier valid token, it asks before that one expires.
    func tokenRefused() {
        guard renewToken != nil else { return }
        token = nil
        renewLater()
    }

    /// Called on a second `welcome`, the answer to `renew`. Retries what the former token did not allow.
    func renewed(_ welcome: ServerFrame.Welcome) {
        note(.welcomed)
        renewLater(welcome)
        for stream in opened.values {
            if stream.outbox.isHeld {
                stream.outbox.release()
                step(stream, .queueMoved)
                markDirty(stream)
            }
        }
        arrangePlaces(restartsAll: true)
        for stream in opened.values { step(stream, .tokenChanged) }
    }

    /// Schedules the renewal early enough that a slow answer, or a second attempt, still arrives in time.
    func renewLater(_ welcome: ServerFrame.Welcome) {
        guard let seconds = welcome.tokenS else { return }
        link?.tokenEndsAtMs = transport.nowMs + Int64(clamping: min(seconds, Self.tokenSecondsMax)) * 1_000
        renewLater()
    }

    /// Asks for another token before the present one expires.
    func renewLater() {
        guard renewToken != nil, let endsAtMs = link?.tokenEndsAtMs else { return }
        let leftMs = endsAtMs - transport.nowMs
        guard leftMs > 0 else { return }
        link?.renewal?.cancel()
        link?.renewal = after(max(Self.renewalMsMin, leftMs / 5 * 4)) { $0.askForToken() }
    }

    /// The shortest time between two renewals, so that very short tokens do not cause constant requests.
    private static let renewalMsMin: Int64 = 1_000
    /// The longest lifetime of a token that is scheduled: one year.
    private static let tokenSecondsMax = 365 * 86_400

    private func askForToken() {
        guard let renewToken, tokenQuestion == nil, !isClosed else { return }
        waits += 1
        let number = waits
        let task = Task { [weak self] in
            do {
                let token = try await renewToken()
                await self?.tokenCame(token, number)
            } catch {
                await self?.noTokenCame("\(error)", number)
            }
        }
        let deadline = after(Self.tokenMs) { client in
            task.cancel()
            client.noTokenCame("`renewToken` has not answered within \(Self.tokenMs / 1_000) s", number)
        }
        tokenQuestion = TokenQuestion(number: number, task: task, deadline: deadline)
    }

    /// Ends a question. Returns false if it has ended before: its answer is too late.
    private func answered(_ number: Int) -> Bool {
        guard tokenQuestion?.number == number else { return false }
        tokenQuestion?.deadline.cancel()
        tokenQuestion = nil
        return true
    }

    /// Takes a token from the app. It may serve a later connection than the one for which it was requested.
    private func tokenCame(_ token: String, _ number: Int) {
        guard answered(number) else { return }
        guard takes(token) else { return continueWithoutToken("its subject is not the user of this device") }
        note(.tokenCame)
        self.token = token
        if link?.awaitsToken == true {
            sayHello()
        } else if link?.welcome != nil {
            send(ClientFrame(.renew(token: token)))
        }
    }

    private func noTokenCame(_ reason: String, _ number: Int) {
        guard answered(number) else { return }
        notify(.tokenUnavailable(reason: reason))
        note(.noToken(reason))
        continueWithoutToken(reason)
    }

    private func continueWithoutToken(_ reason: String) {
        guard let link else { return }
        if link.awaitsToken { lost(link.number, "no token is available: \(reason)") } else { renewLater() }
    }
}
