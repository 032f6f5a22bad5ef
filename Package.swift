// swift-tools-version: 6.2
import PackageDescription

// Modules and their allowed dependencies are described in docs/explanation/architecture.md; the suite `Tidy` checks
// that both files agree.

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
]

func library(_ name: String, _ dependencies: [Target.Dependency] = [], resources: [Resource] = []) -> Target {
    .target(name: name, dependencies: dependencies, resources: resources, swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, swiftSettings: settings)
}

// The SDK of the system has SQLite on Apple platforms. The files of pkg-config there describe another one.
#if os(Linux)
let sqlite: String? = "sqlite3"
#else
let sqlite: String? = nil
#endif

/// ReelNet contains the loop of nodes, and the transport of clients on Linux.
let linux = TargetDependencyCondition.when(platforms: [.linux])

let package = Package(
    name: "reel",
    platforms: [.macOS(.v15), .iOS(.v18), .tvOS(.v18), .watchOS(.v11), .visionOS(.v2)],
    products: [
        .library(name: "Reel", targets: ["Reel", "ReelClient", "ReelCore"]),
        .library(name: "ReelClient", targets: ["ReelClient", "ReelCore"]),
        .library(name: "ReelFoundation", targets: ["ReelFoundation"]),
        .library(name: "ReelURLSession", targets: ["ReelURLSession"]),
        .library(name: "ReelSwiftUI", targets: ["ReelSwiftUI"]),
        .library(name: "ReelStorageConformance", targets: ["ReelStorageConformance"]),
        .library(name: "ReelTesting", targets: ["ReelTesting"]),
        .executable(name: "reel", targets: ["ReelTool"]),
    ],
    targets: [
        // C libraries: module map and inline shims only.
        .systemLibrary(name: "CLinux", path: "Sources/Libraries/linux"),
        .systemLibrary(
            name: "CLibuv",
            path: "Sources/Libraries/libuv",
            pkgConfig: "libuv",
            providers: [.apt(["libuv1-dev"])]
        ),
        .systemLibrary(
            name: "COpenSSL",
            path: "Sources/Libraries/openssl",
            pkgConfig: "libssl",
            providers: [.apt(["libssl-dev"])]
        ),
        .systemLibrary(
            name: "CRdkafka",
            path: "Sources/Libraries/rdkafka",
            pkgConfig: "rdkafka",
            providers: [.apt(["librdkafka-dev"])]
        ),
        .systemLibrary(
            name: "CSQLite",
            path: "Sources/Libraries/sqlite3",
            pkgConfig: sqlite,
            providers: [.apt(["libsqlite3-dev"])]
        ),
        // All functions are inline, so no library is linked.
        .systemLibrary(
            name: "CXxhash",
            path: "Sources/Libraries/xxhash",
            providers: [.apt(["libxxhash-dev"])]
        ),
        .systemLibrary(
            name: "CZlib",
            path: "Sources/Libraries/zlib",
            pkgConfig: "zlib",
            providers: [.apt(["zlib1g-dev"])]
        ),

        library("ReelBase"),
        library("ReelCore", ["ReelBase"]),
        library("ReelSQLite", ["CSQLite"]),
        library("ReelNet", ["CLibuv", "CLinux", "COpenSSL", "CZlib"]),
        library("ReelLog", ["ReelBase", "CLinux", "CXxhash", "ReelCore", "ReelSQLite"]),
        library("ReelKafka", ["ReelBase", "CRdkafka", "ReelCore", "ReelLog"]),
        library("ReelNode", ["ReelBase", "ReelCore", "ReelLog", "ReelNet"], resources: [.embedInCode("openapi.yaml")]),
        library("ReelGateway", ["ReelBase", "ReelCore", "ReelLog", "ReelNode", "ReelNet"]),
        library("ReelSnapshot", ["ReelBase", "ReelCore", "ReelLog", "ReelNode", "ReelNet", "ReelSQLite"]),
        library("ReelClient", ["ReelBase", "ReelCore", "ReelSQLite", .byName(name: "ReelNet", condition: linux)]),
        library("Reel", ["ReelBase", "ReelClient", "ReelCore"]),
        library("ReelFoundation", ["Reel", "ReelClient", "ReelCore"]),
        library("ReelURLSession", ["ReelClient", "ReelCore"]),
        library("ReelSwiftUI", ["Reel"]),
        library("ReelStorageConformance", ["ReelBase", "ReelClient", "ReelCore"]),
        library("ReelTesting", ["ReelBase", "Reel", "ReelClient", "ReelCore"]),
        // The checker scans a whole text for each splice. It is optimised, because otherwise its tests take minutes.
        .target(name: "ReelCheck", swiftSettings: settings + [.unsafeFlags(["-O"], .when(configuration: .debug))]),
        library("ReelLab", ["ReelBase", "ReelCore", "ReelClient", "ReelNet", "CZlib"]),
        .executableTarget(
            name: "ReelTool",
            dependencies: [
                "ReelBase", "ReelCheck", "ReelClient", "ReelCore", "ReelGateway", "ReelKafka", "ReelLab", "ReelLog",
                "ReelNet", "ReelNode", "ReelSnapshot",
            ],
            swiftSettings: settings
        ),

        // Waiting for conditions, random numbers and the text of events, for all suites.
        .target(
            name: "TestSupport",
            dependencies: ["ReelBase"],
            path: "Tests/TestSupport",
            swiftSettings: settings
        ),

        // Settings, raw connections and mock brokers, for the suites of nodes.
        .target(
            name: "NodeTestSupport",
            dependencies: ["CRdkafka", "ReelCore", "ReelKafka", "ReelLog", "ReelNet", "ReelNode", "TestSupport"],
            path: "Tests/NodeTestSupport",
            swiftSettings: settings
        ),

        // Nodes in memory, for the suites of clients.
        .target(
            name: "ClientTestSupport",
            dependencies: ["ReelBase", "ReelClient", "ReelCore", "ReelNet"],
            path: "Tests/ClientTestSupport",
            swiftSettings: settings
        ),

        // The behaviour that every log has, for the suites of all logs.
        .target(
            name: "EventLogConformance",
            dependencies: ["ReelCore", "ReelLog", "TestSupport"],
            path: "Tests/EventLogConformance",
            swiftSettings: settings
        ),

        // Processes that tests start and kill.
        .executableTarget(
            name: "log-writer",
            dependencies: ["ReelLog"],
            path: "Tests/LogWriterProcess",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "storage-writer",
            dependencies: ["CSQLite", "FailingCalls", "ReelClient", "ReelCore"],
            path: "Tests/StorageWriterProcess",
            swiftSettings: settings
        ),
        // It replaces functions of the C library, so no test target depends on it: a test's program would contain it.
        .executableTarget(
            name: "device-writer",
            dependencies: ["FailingCalls", "ReelClient", "ReelCore", "ScriptedNodes"],
            path: "Tests/DeviceProcess",
            swiftSettings: settings
        ),
        // The system calls with which SQLite changes files, for those processes.
        .target(name: "FailingCalls", dependencies: ["CSQLite"], path: "Tests/FailingCalls", swiftSettings: settings),
        // A node in the process of a device, for tests and benchmarks.
        .target(
            name: "ScriptedNodes",
            dependencies: ["ReelClient", "ReelCore", "ReelNet"],
            path: "Tests/ScriptedNodes",
            swiftSettings: settings
        ),

        .executableTarget(
            name: "example-todo",
            dependencies: ["Reel", "ReelClient", "ReelCore"],
            path: "Examples/Todo",
            swiftSettings: settings
        ),
        .executableTarget(
            name: "example-light-switch",
            dependencies: ["Reel", "ReelClient"],
            path: "Examples/LightSwitch",
            swiftSettings: settings
        ),
        .target(
            name: "OwnStorage",
            dependencies: ["ReelClient", "ReelCore"],
            path: "Examples/OwnStorage",
            swiftSettings: settings
        ),

        // Runs a command with a real Kafka.
        .executableTarget(
            name: "with-kafka",
            dependencies: ["ReelLab"],
            path: "Tests/Kafka/with-kafka",
            swiftSettings: settings
        ),
        // Faults under load, one after another.
        .executableTarget(
            name: "reel-faults",
            dependencies: ["CRdkafka", "ReelBase", "ReelCheck", "ReelClient", "ReelCore", "ReelLab", "ReelNet"],
            path: "Tests/Faults",
            swiftSettings: settings
        ),

        tests("ReelCoreTests", ["ReelCheck", "ReelCore", "TestSupport"]),
        tests(
            "ReelCheckTests",
            ["CZlib", "EventLogConformance", "ReelBase", "ReelCheck", "ReelCore", "ReelLog", "TestSupport"]
        ),
        tests("ReelNetTests", ["NodeTestSupport", "ReelNet", "TestSupport"]),
        tests(
            "ReelLogTests",
            ["EventLogConformance", "ReelCore", "ReelLog", "ReelSQLite", "log-writer", "TestSupport"]
        ),
        tests(
            "ReelKafkaTests",
            ["CRdkafka", "EventLogConformance", "NodeTestSupport", "ReelCore", "ReelKafka", "ReelLog", "TestSupport"]
        ),
        tests("ReelNodeTests", ["EventLogConformance", "ReelCore", "ReelNet", "ReelNode", "TestSupport"]),
        tests(
            "ReelGatewayTests",
            [
                "EventLogConformance", "NodeTestSupport", "ReelBase", "ReelClient", "ReelCore", "ReelGateway",
                "ReelLog", "ReelNet", "ReelNode", "ReelSnapshot", "TestSupport",
            ]
        ),
        tests(
            "ReelSnapshotTests",
            [
                "EventLogConformance", "NodeTestSupport", "ReelCore", "ReelLog", "ReelNet", "ReelNode", "ReelSQLite",
                "ReelSnapshot", "TestSupport",
            ]
        ),
        tests(
            "ReelStorageTests",
            [
                "OwnStorage", "ReelClient", "ReelCore", "ReelSQLite", "ReelStorageConformance", "storage-writer",
                "TestSupport",
            ]
        ),
        tests(
            "ReelClientTests",
            [
                "ClientTestSupport", "OwnStorage", "ReelBase", "ReelClient", "ReelCore", "ReelFoundation", "ReelNet",
                "ReelSQLite",
                "ScriptedNodes",
                "example-todo", "TestSupport",
            ]
        ),
        tests(
            "ReelModelTests",
            ["ClientTestSupport", "Reel", "ReelClient", "ReelCore", "ReelFoundation", "TestSupport"]
        ),
        tests(
            "ReelURLSessionTests",
            ["ReelClient", "ReelCore", .byName(name: "ReelNet", condition: linux), "ReelURLSession", "TestSupport"]
        ),
        tests(
            "ReelTestingTests",
            ["Reel", "ReelBase", "ReelCheck", "ReelClient", "ReelCore", "ReelTesting", "TestSupport"]
        ),
        tests(
            "ReelTests",
            [
                "ReelTool", "CRdkafka", "EventLogConformance", "NodeTestSupport", "ReelBase", "ReelCheck", "ReelClient",
                "ReelCore", "ReelGateway", "ReelKafka", "ReelLab", "ReelLog", "ReelNet", "ReelNode", "ReelSQLite",
                "ReelSnapshot", "TestSupport",
            ]
        ),
        // Client, gateway and fold in virtual time.
        tests(
            "SimulationTests",
            [
                "ReelBase", "ReelCheck", "ReelClient", "ReelCore", "ReelGateway", "ReelLog", "ReelNet", "ReelNode",
                "TestSupport",
            ]
        ),
        // Benchmarks, and plain C programs that show the limit of the machine.
        .target(name: "CFanOutFloor", dependencies: ["COpenSSL"], path: "Tests/Benchmarks/FanOutFloor"),
        .target(
            name: "CKafkaFloor",
            dependencies: ["CFanOutFloor", "CRdkafka"],
            path: "Tests/Benchmarks/KafkaFloor"
        ),
        .target(name: "CLogFloor", dependencies: ["CSQLite"], path: "Tests/Benchmarks/LogFloor"),
        .target(name: "CDeviceFloor", dependencies: ["CSQLite"], path: "Tests/Benchmarks/DeviceFloor"),
        .executableTarget(
            name: "reel-bench",
            dependencies: [
                "CDeviceFloor", "CFanOutFloor", "CKafkaFloor", "CLogFloor", "Reel", "ReelBase", "ReelCheck",
                "ReelClient", "ReelCore", "ReelGateway", "ReelKafka", "ReelLab", "ReelLog", "ReelNet", "ReelNode",
                "ReelSQLite", "ReelSnapshot", "ScriptedNodes",
            ],
            path: "Tests/Benchmarks/reel-bench",
            swiftSettings: settings
        ),
        tests("TidyTests", []),
    ]
)

// Nodes need Linux. On a Mac the package consists of the modules for apps, and of the suites that need no node.
#if !os(Linux)
let portable: Set = [
    "CSQLite", "Reel", "ReelBase", "ReelCheck", "ReelClient", "ReelCore", "ReelCoreTests", "ReelFoundation",
    "ReelSQLite",
    "ReelStorageConformance", "ReelSwiftUI", "ReelTesting", "ReelTestingTests", "ReelURLSession", "ReelURLSessionTests",
    "TestSupport",
]
package.products.removeAll { $0.name == "reel" }
package.targets.removeAll { !portable.contains($0.name) }
for target in package.targets {
    target.dependencies.removeAll { dependency in
        if case .byNameItem(let name, _) = dependency { !portable.contains(name) } else { false }
    }
}
#endif
