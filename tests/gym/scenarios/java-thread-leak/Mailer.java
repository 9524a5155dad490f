public class Mailer {
    static void send(int number) {
        Thread thread = new Thread(() -> {
            try {
                Thread.sleep(3_600_000);
            } catch (InterruptedException e) {
                throw new RuntimeException(e);
            }
        }, "mail-" + number);
        thread.start();
    }

    public static void main(String[] args) throws Exception {
        for (int number = 0; ; number++) {
            send(number);
            Thread.sleep(60);
        }
    }
}
