import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;

class Mailbox {
    private final ConcurrentLinkedQueue<String> letters = new ConcurrentLinkedQueue<>();

    void drop(String letter) {
        letters.add(letter);
    }

    String awaitLetter() {
        String letter;
        while ((letter = letters.poll()) == null) {
            LockSupport.parkNanos(60_000);
        }
        return letter;
    }
}

public class Mailroom {
    static volatile int delivered;

    static void sortLetters(Mailbox box) {
        while (true) {
            delivered += box.awaitLetter().length();
        }
    }

    public static void main(String[] args) throws Exception {
        Mailbox[] boxes = new Mailbox[4];
        for (int i = 0; i < boxes.length; i++) {
            Mailbox box = boxes[i] = new Mailbox();
            new Thread(() -> sortLetters(box), "sorter-" + i).start();
        }
        for (int n = 0;; n++) {
            boxes[n % boxes.length].drop("letter " + n);
            Thread.sleep(200);
        }
    }
}
