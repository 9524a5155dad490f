import java.util.ArrayList;
import java.util.List;

public class Cache {
    static final List<byte[]> pages = new ArrayList<>();

    static void renderPage() {
        pages.add(new byte[40_000]);
    }

    public static void main(String[] args) throws Exception {
        for (;;) {
            renderPage();
            Thread.sleep(10);
        }
    }
}
