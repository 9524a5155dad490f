<?php
namespace Shop;
return descend($below);
