internal import ReelCore

// The deployment that the device belongs to. The client sends nothing to another one until the app allows it.
extension SyncClient {
    /// Returns the reason why the device must leave a node, and tells the app; nil if it may stay.
    ///
    /// A node of a former log reports an earlier state of the device's events. To believe it could apply them twice.
    /// The log of another deployment does not contain them.
    func reasonToLeave(_ welcome: ServerFrame.Welcome, _ node: String) -> String? {
        if let reason = absurdity(of: welcome) { return reason }
        if let found = welcome.deployment, let deployment, found != deployment {
            otherDeployment = found
            notify(.otherDeployment(node: node, found: found.description, expected: deployment.description))
            let message = "found the deployment \(found) at \(node), expected that of this device, \(deployment)"
            note(.otherDeployment(message))
            return message
        }
        guard welcome.number >= logNumber else {
            // A device of an older build does not know its own deployment.
            otherDeployment = deployment == nil ? welcome.deployment : nil
            notify(.nodeBehind(node: node, number: welcome.number, expected: logNumber))
            let message =
                "found log number \(welcome.number), epoch \(welcome.epoch), at \(node), expected number \(logNumber)"
            note(.formerLog(message))
            return message
        }
        otherDeployment = nil
        if welcome.number > logNumber { (logNumber, logIsWritten) = (welcome.number, false) }
        if deployment == nil, let found = welcome.deployment { (deployment, logIsWritten) = (found, false) }
        return nil
    }

    /// The smallest limits that a device believes. A node cannot be set to smaller ones, and with smaller ones the
    /// device would refuse own events as too large.
    static let (frameBytesMin, eventBytesMin) = (16 << 10, 4 << 10)
    /// The largest step of the log's number that a device believes. Each new epoch adds one to the number.
    static let numbersMissedMax = 1_000_000

    /// Returns the reason why no honest node sends this `welcome`; nil if it is plausible.
    private func absurdity(of welcome: ServerFrame.Welcome) -> String? {
        let limits = welcome.limits
        guard limits.frame >= Self.frameBytesMin, limits.event >= Self.eventBytesMin, limits.batch > 0, limits.fetch > 0
        else {
            return "found limits of \(limits.frame) bytes a frame, \(limits.event) bytes an event, \(limits.batch)"
                + " events a publish and \(limits.fetch) seqs a fetch, expected at least \(Self.frameBytesMin),"
                + " \(Self.eventBytesMin), 1 and 1"
        }
        guard welcome.number - logNumber <= Self.numbersMissedMax else {
            return "found log number \(welcome.number), expected at most \(logNumber + Self.numbersMissedMax)"
        }
        return nil
    }

    /// Makes this device a device of another deployment, which `status.otherDeployment` names. Use it if the device's
    /// own deployment was replaced. Returns when the change is durable.
    ///
    /// The state of each stream comes from the new deployment, and is not mixed with the former one's, which is shown
    /// until then. The queue of each stream is kept, also of the streams that are not open, and is sent as after a
    /// change of the epoch:
    ///
    /// - Events that the new log has consumed already, because it was made from a backup, are settled by its version
    ///   vector.
    /// - The others are sent. If the new log does not know the former site's ops, they are sent under a new site.
    /// - Events that depend on seqs of the former log (splices, guards) are refused with `epoch_changed`.
    ///
    /// With the device's own deployment, the device forgets the highest log number that a node has named. Use that if a
    /// node of the deployment has named a number that no log has. Otherwise all other nodes would count as too old.
    ///
    /// - Parameter id: the deployment, 16 lower-case hex digits.
    /// - Throws: A `ReelError`: `bad_request` for a text that is no deployment, a code that begins with `store_` if the
    ///   store failed, `closed` once the client is closed.
    public func adopt(deployment id: String) throws {
        try checkOpen()
        guard let adopted = Deployment(id) else {
            let found = id.debugDescription
            throw ReelError(.badRequest, "found the deployment \(found), expected 16 lower-case hex digits")
        }
        guard adopted != deployment || problems.holdsFormerLog else { return }
        let isOwn = adopted == deployment
        finishTurn()
        try checkOpen()
        do throws(ReelError) {
            try store?.commit(durably: true) { [store] (changes) throws(ReelError) in
                store?.changeClient(&changes) {
                    $0.logNumber = 0
                    $0.deployment = adopted
                }
                if !isOwn { try store?.forgetHeld(&changes) }
            }
        } catch {
            fail(error)
            throw error
        }
        (deployment, logNumber, logIsWritten, otherDeployment) = (adopted, 0, true, nil)
        if !isOwn { for stream in opened.values { stream.outbox.forgetHeld() } }
        note(.adopted)
        changedStatus()
        dropLink()
        failover.hurry()
        if !opened.values.isEmpty { connectNext() }
    }
}
