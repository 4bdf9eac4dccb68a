# SPDX-License-Identifier: MIT
# Children, alarms and pipes as scripts of Perl have them.
use strict;
use warnings;
use POSIX ":sys_wait_h";
$| = 1;
my @ended;
$SIG{CHLD} = sub {
    while ((my $pid = waitpid(-1, WNOHANG)) > 0) { push @ended, $? >> 8 }
};
for my $i (1 .. 4) {
    my $pid = fork();
    POSIX::_exit($i) if !$pid;
}
my $end = time + 10;
select(undef, undef, undef, 0.01) while @ended < 4 && time < $end;
print "children @{[sort @ended]}\n";
$SIG{CHLD} = 'DEFAULT';
eval {
    local $SIG{ALRM} = sub { die "late\n" };
    alarm 1;
    select(undef, undef, undef, 5);
    alarm 0;
};
print "alarm: $@";
open(my $from, "-|", "sh", "-c", "echo piped; exit 4") or die;
print <$from>;
close($from);
print $? >> 8, "\n";
my $pid = open(my $to, "|-");
if (!$pid) {
    print "child: $_" while <STDIN>;
    exit 6;
}
print $to "to a child\n";
close $to;
print $? >> 8, "\n";
print `echo quoted; exit 2`, $? >> 8, "\n";
exec "sh", "-c", "exit 11";
