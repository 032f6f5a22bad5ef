/// The readable content of one stream, without a hold on the client.
package struct StreamContent: Sendable {
    let content: ClientContent
    let opening: StreamOpening
    let report: StreamSnapshot.DamageReport
}

extension SyncStream {
    /// The readable content, without a hold on the client.
    package var content: StreamContent {
        StreamContent(content: client.content, opening: opening, report: client.damageReport)
    }
}
