extension ErrorCode {
    /// The properties of a code.
    public struct Entry: Equatable, Sendable {
        /// The HTTP status.
        public var status: Int
        /// The code with which the WebSocket is closed; nil if the connection stays open.
        public var close: UInt16?
        /// Tells if the same request, sent again, can succeed.
        public var retry: Retry
        /// A short heading that never varies.
        public var title: String
        /// The description of what has happened.
        public var meaning: String
        /// The advice on what to do.
        public var advice: String
    }

    /// True if only a device has errors with this code: no node sends it.
    package var isOfDevice: Bool {
        switch self {
        case .storeBusy, .storeFull, .storeFailed, .storeFormat, .storeDamaged, .storeLost, .storeUser, .storeWaits,
            .badAddress, .closed, .offline, .noToken, .wrongDeployment, .newerLog:
            true
        default: false
        }
    }

    /// The HTTP status of an answer with this code.
    public var status: Int { entry.status }

    /// The code with which the WebSocket is closed; nil if the connection stays open.
    public var close: UInt16? { entry.close }

    /// The code's heading.
    public var title: String { entry.title }
}
