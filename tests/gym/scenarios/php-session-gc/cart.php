<?php
function open_cart(): array {
    session_start();
    return $_SESSION['cart'] ?? [];
}
function total(array $cart): int {
    return array_sum($cart);
}
echo total(open_cart());
