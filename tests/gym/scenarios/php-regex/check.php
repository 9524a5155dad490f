<?php
ini_set("pcre.jit", "0");
for ($i = 0; $i < 12; $i++)
    preg_match('/^(a+)+$/', str_repeat("a", 18) . "b");
echo "ok";
