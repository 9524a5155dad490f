import java.io.PrintStream;

public class Audit {
    static final PrintStream out = System.out;

    static void record(int number) {
        out.println("order " + number + " " + "x".repeat(400));
    }

    public static void main(String[] args) {
        for (int i = 0; i < 8; i++) {
            final int number = i;
            new Thread(() -> { while (true) record(number); }, "order-" + i).start();
        }
    }
}
