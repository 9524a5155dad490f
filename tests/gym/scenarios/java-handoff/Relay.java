import java.util.concurrent.SynchronousQueue;

public class Relay {
    static final SynchronousQueue<Integer> there = new SynchronousQueue<>(), back = new SynchronousQueue<>();

    static void passItem() throws Exception {
        there.put(1);
        back.take();
    }

    public static void main(String[] args) throws Exception {
        Thread other = new Thread(() -> {
            try {
                while (true) back.put(there.take());
            } catch (InterruptedException e) {
            }
        }, "relay-back");
        other.start();
        while (true) passItem();
    }
}
