import java.util.concurrent.locks.ReentrantReadWriteLock;

public class Prices {
    static final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
    static volatile int price;

    static void reload() throws InterruptedException {
        lock.writeLock().lock();
        try {
            Thread.sleep(300);
            price++;
        } finally {
            lock.writeLock().unlock();
        }
    }

    static int quote() {
        lock.readLock().lock();
        try {
            return price;
        } finally {
            lock.readLock().unlock();
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 8; i++) {
            new Thread(() -> {
                try {
                    for (;;) {
                        quote();
                        Thread.sleep(5);
                    }
                } catch (InterruptedException e) {
                    return;
                }
            }, "quote-" + i).start();
        }
        for (;;) {
            reload();
            Thread.sleep(20);
        }
    }
}
