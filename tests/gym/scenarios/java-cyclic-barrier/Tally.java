import java.util.concurrent.CyclicBarrier;

public class Tally {
    static volatile long sink;
    static final CyclicBarrier rounds = new CyclicBarrier(4);

    static void count(int rows) {
        long sum = 0;
        for (int i = 0; i < rows; i++) sum = sum * 31 + i;
        sink = sum;
    }

    static void work(int number) throws Exception {
        while (true) {
            count(number == 0 ? 90_000_000 : 1_000_000);
            rounds.await();
        }
    }

    public static void main(String[] args) {
        for (int i = 0; i < 4; i++) {
            final int number = i;
            new Thread(() -> {
                try {
                    work(number);
                } catch (Exception e) {
                    e.printStackTrace();
                }
            }, "tally-" + i).start();
        }
    }
}
