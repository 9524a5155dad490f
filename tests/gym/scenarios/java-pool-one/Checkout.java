import java.util.concurrent.*;

public class Checkout {
    static final BlockingQueue<String> pool = new ArrayBlockingQueue<>(1);

    static void placeOrder() throws Exception {
        String connection = pool.take();
        try {
            runQuery(connection);
        } finally {
            pool.put(connection);
        }
    }

    static void runQuery(String connection) throws Exception {
        Thread.sleep(25);
    }

    public static void main(String[] args) throws Exception {
        pool.put("only");
        for (int i = 0; i < 8; i++) {
            new Thread(() -> {
                try {
                    while (true) placeOrder();
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            }, "checkout-" + i).start();
        }
    }
}
