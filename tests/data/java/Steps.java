import java.util.Arrays;
import java.util.HashMap;

public class Steps {
    static volatile int sink;
    static volatile double real;

    abstract static class Shape { abstract int area(int n); }
    static final class Square extends Shape { @Override int area(int n) { return leafA(n) * n; } } // square
    static final class Circle extends Shape { @Override int area(int n) { return leafB(n) * 3; } } // circle
    static final class Wedge extends Shape { @Override int area(int n) { return leafC(n) + 1; } } // wedge
    interface Step { int take(int n); }
    static final class One implements Step { @Override public int take(int n) { return leafD(n) + 1; } } // one
    static final class Two implements Step { @Override public int take(int n) { return leafE(n) + 2; } } // two
    static final class Three implements Step { @Override public int take(int n) { return leafF(n) + 3; } } // three
    static final Shape[] SHAPES = {new Square(), new Circle(), new Wedge()};
    static final Step[] STEPS = {new One(), new Two(), new Three()};

    static int leafA(int n) { return n * 31 + 7; }
    static int leafB(int n) { int m = n; for (int at = 0; at < (n & 3); at++) m = m * 5 + at; return m; }
    static int leafC(int n) { return n / ((n & 7) + 1); }
    static int leafD(int n) { return n % 11 == 0 ? n : -n; }
    static int leafE(int n) { return (int) (Math.sqrt(n & 0xffff) * 3.0); }
    static int leafF(int n) { return Integer.bitCount(n) + n; }

    static int many(int a, long b, int c, long d, int e, long f, int g, long h, double i, float j) {
        return leafMany(a + c + e + g) + (int) (b + d + f + h) + (int) (i + j); // many
    }
    static int leafMany(int n) { return n ^ 0x55; }

    static int sorted(int n) {
        Integer[] pair = {n & 0xff, 7};
        Arrays.sort(pair, (a, b) -> compared(n) + a - b); // lambda
        return pair[0];
    }
    static int compared(int n) { return n & 1; }

    static final class Key {
        final int n;
        Key(int n) { this.n = n; }
        @Override public int hashCode() { return hashed(n); } // hash
    }
    static int hashed(int n) { return n >>> 3; }
    static int put(int n) {
        HashMap<Key, Integer> map = new HashMap<>();
        map.put(new Key(n), n); // put
        return map.size();
    }

    static int guarded(int n) {
        try { return thrown(n); } // guarded
        catch (IllegalStateException e) { return caught(n); } // caught
    }
    static int thrown(int n) { return thrower(n) + 1; } // thrown
    static final IllegalStateException PREPARED = new IllegalStateException("x");
    static int thrower(int n) { if ((n & 3) == 0) throw PREPARED; return n; }
    static int caught(int n) { return n + 5; }

    static int locked(int n) { return held(n) + 1; } // locked
    static synchronized int held(int n) { return insideLock(n); } // held
    static int insideLock(int n) { return n * 7; }

    static int natives(int n) {
        int[] from = new int[16], to = new int[16];
        System.arraycopy(from, 0, to, 0, 8 + (n & 7));
        real += Math.sin(n) + Math.pow(n, 0.3);
        return to[3] + (int) System.nanoTime() + System.identityHashCode(from) % 3 + Thread.currentThread().getPriority();
    }

    static int texts(int n) {
        String one = "abc" + n, two = "abd" + sink;
        return one.compareTo(two) + one.indexOf("c") + (one.equals(two) ? 1 : 0) + new StringBuilder(one).reverse().length();
    }

    static long wide(long a, long b) { return wider(a / (b | 1), a % (b | 1)); } // wide
    static long wider(long a, long b) { return Math.multiplyHigh(a, b) + Long.numberOfLeadingZeros(a); }

    static int switched(int n) {
        switch (n & 7) {
            case 0: return switchedLeaf(n); // switched
            case 1: return n + 2;
            case 5: return n * n;
            default: return n - 1;
        }
    }
    static int switchedLeaf(int n) { return n | 1; }

    static int down(int left, int n) { return left == 0 ? bottom(n) : down1(left - 1, n) + 1; } // down
    static int down1(int left, int n) { return left == 0 ? n : down2(left - 1, n) + 1; } // down1
    static int down2(int left, int n) { return left == 0 ? n : down3(left - 1, n) + 1; } // down2
    static int down3(int left, int n) { return n + left; }
    static int bottom(int n) { return n; }

    static int round(int n) {
        int sum = SHAPES[n % 3].area(n); // round1
        sum += STEPS[n % 3].take(n); // round2
        sum += many(n, n, 3, n, 5, 6L, n, 8L, n, 2f); // round3
        sum += sorted(n); // round4
        sum += put(n); // round5
        sum += guarded(n); // round6
        sum += locked(n); // round7
        sum += natives(n); // round8
        sum += texts(n); // round9
        sum += (int) wide(n * 0x123456789L, n); // round10
        sum += switched(n); // round11
        sum += down(3, n); // round12
        return sum;
    }
    static int seldom(int n) { return seldomLeaf(n) + 1; } // seldom
    static int seldomLeaf(int n) { return n * 3; }

    public static void main(String[] arguments) {
        int warm = Integer.parseInt(arguments[0]);
        for (int n = 0; n < warm; n++) sink += round(n); // warm
        System.out.println("ready");
        for (int n = 0; ; n = (n + 1) & 0xffff) {
            sink += round(n); // main
            if (n % 7 == 0) sink += seldom(n); // main2
        }
    }
}
