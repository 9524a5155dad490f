import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

public class Poller {
    static volatile long seen;

    static void pollQueue() {
        seen++;
    }

    public static void main(String[] args) {
        var scheduler = Executors.newScheduledThreadPool(1);
        scheduler.scheduleAtFixedRate(Poller::pollQueue, 0, 100, TimeUnit.MICROSECONDS);
    }
}
