import java.util.concurrent.locks.ReentrantLock;

public class Counter {
    static final ReentrantLock lock = new ReentrantLock();

    static void bump() throws Exception {
        lock.lock();
        try {
            Thread.sleep(5);
        } finally {
            lock.unlock();
        }
    }

    public static void main(String[] args) {
        for (int i = 0; i < 6; i++) {
            new Thread(() -> {
                try {
                    while (true) bump();
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            }, "bumper-" + i).start();
        }
    }
}
