public class Scoring {
    static volatile double result;

    static void scoreCustomers(int seed) {
        double sum = seed;
        while (true) {
            sum += Math.sqrt(sum) * 1.0000001;
            if (sum > 1e300) {
                result = sum;
                sum = seed;
            }
        }
    }

    public static void main(String[] args) {
        for (int i = 0; i < 5; i++) {
            int seed = i + 1;
            new Thread(() -> scoreCustomers(seed), "score-" + i).start();
        }
    }
}
