import ReelKafka
import Testing

@Suite
struct KafkaLibraryTests {
    @Test func theLibrarySaysItsVersion() {
        #expect(KafkaLibrary.version.split(separator: ".").count >= 3)
    }
}
