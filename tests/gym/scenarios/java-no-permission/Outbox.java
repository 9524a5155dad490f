import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;

public class Outbox {
    private final Path folder;
    private final ArrayDeque<String> waiting = new ArrayDeque<>();

    Outbox(String folder) {
        this.folder = Path.of(folder);
    }

    boolean deliver(String letter, int number) {
        try {
            Files.writeString(folder.resolve("letter-" + number), letter);
            return true;
        } catch (IOException error) {
            waiting.add(letter);
            return false;
        }
    }

    public static void main(String[] words) throws Exception {
        Outbox outbox = new Outbox(words[0]);
        for (int number = 0; ; number++) {
            outbox.deliver("hello " + number, number % 100);
            if (outbox.waiting.size() > 1000) {
                outbox.waiting.clear();
            }
            Thread.sleep(100);
        }
    }
}
