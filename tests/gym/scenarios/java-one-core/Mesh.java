public class Mesh {
    static volatile long sink;

    static void relax(long seed) {
        for (int i = 0; i < 20_000_000; i++) seed = seed * 31 + i;
        sink = seed;
    }

    public static void main(String[] args) {
        for (int i = 0; i < 4; i++) {
            final int number = i;
            new Thread(() -> { while (true) relax(number); }, "mesh-" + i).start();
        }
    }
}
