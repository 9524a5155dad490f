public class Tax {
    static long sumRates(long seed) {
        for (int i = 0; i < 1 << 20; i++) {
            seed = seed * 6364136223846793005L + 1442695040888963407L;
        }
        return seed;
    }

    public static void main(String[] args) throws Exception {
        long seed = 1;
        for (;;) {
            seed = sumRates(seed);
        }
    }
}
