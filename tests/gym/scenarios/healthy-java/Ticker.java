import java.util.concurrent.*;

public class Ticker {
    public static void main(String[] args) {
        ScheduledExecutorService timers = Executors.newScheduledThreadPool(4);
        ExecutorService workers = Executors.newFixedThreadPool(8);
        timers.scheduleAtFixedRate(
            () -> workers.submit(() -> Math.sqrt(System.nanoTime())), 0, 5, TimeUnit.MILLISECONDS);
    }
}
