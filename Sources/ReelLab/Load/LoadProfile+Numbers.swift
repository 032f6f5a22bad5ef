extension LoadProfile.Number {
    /// The range of valid values.
    public var bounds: ClosedRange<Int> {
        switch self {
        case .streams: 1...100_000
        case .rate: 1...10_000_000
        case .size: 1...200_000
        case .storm, .seconds: 1...1_000_000
        case .publishers, .sleepers, .readers, .editors, .coldstarts: 0...1_000_000
        }
    }

    /// The help text, without a full stop.
    public var help: String {
        switch self {
        case .streams: "number of streams: NAME-0, NAME-1, …; default 1"
        case .publishers: "clients that publish; default 10"
        case .sleepers: "publishers that are offline for four of every ten seconds"
        case .readers: "clients that subscribe; default 10"
        case .editors: "clients that publish and subscribe, and edit one text together"
        case .coldstarts: "readers that start without data, per second"
        case .rate: "events per second of all publishers together; default 100"
        case .size: "approximate bytes of an event; default 200"
        case .storm: "seconds between two cuts of all connections at once"
        case .seconds: "seconds to run; until Ctrl-C by default"
        }
    }
}

extension LoadPlan {
    /// Takes the numbers of a profile.
    public mutating func take(_ numbers: [LoadProfile.Number: Int]) {
        for (number, value) in numbers {
            switch number {
            case .streams: break
            case .publishers: publishers = value
            case .sleepers: sleepers = value
            case .readers: readers = value
            case .editors: editors = value
            case .coldstarts: coldStarts = value
            case .rate: rate = Double(value)
            case .size: size = value
            case .storm: stormSeconds = Double(value)
            case .seconds: seconds = Double(value)
            }
        }
    }
}
