<?php
function confirm_order($number)
{
    return mail("ann@example.org", "Your order $number", str_repeat("One more line.\n", 40));
}

function place_order()
{
    $number = random_int(1, 100000);
    return confirm_order($number) ? "order $number" : "no mail";
}

echo place_order();
