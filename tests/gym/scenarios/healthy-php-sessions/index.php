<?php
session_save_path(getenv('SESSIONS'));
session_id('user' . preg_replace('/\D/', '', $_SERVER['QUERY_STRING'] ?? '0'));
session_start();
$_SESSION['pages'] = ($_SESSION['pages'] ?? 0) + 1;
session_write_close();
$words = array_map(fn ($n) => "word$n", range(1, 200));
shuffle($words);
echo implode(' ', $words);
