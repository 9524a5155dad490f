<?php
function thumbnail(): string
{
    return (string) shell_exec("/bin/date +%s; /bin/uname -r; /usr/bin/id -u");
}

echo thumbnail();
