public class Bank {
    static final class Account {}

    static final Account left = new Account(), right = new Account();

    static void move(Account from, Account to) throws Exception {
        synchronized (from) {
            Thread.sleep(300);
            synchronized (to) {
                Thread.sleep(1);
            }
        }
    }

    static void run(Account from, Account to) {
        try {
            while (true) move(from, to);
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    public static void main(String[] args) {
        new Thread(() -> run(left, right), "mover-1").start();
        new Thread(() -> run(right, left), "mover-2").start();
    }
}
