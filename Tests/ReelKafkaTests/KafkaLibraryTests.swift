import ReelKafka
import Testing

@Suite
struct KafkaLibraryTests {
    @Test("the library says its version") func theLibrarySaysIts() {
        #expect(KafkaLibrary.version.split(separator: ".").count >= 3)
    }
}
