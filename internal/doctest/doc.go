// Package doctest runs what the documentation shows: the commands of the
// guides in a shell, the configurations through the parser, the command lines
// through the real command line, the examples in their own languages, and the
// alert rules through promtool. It holds nothing but tests.
//
// A guide is a Markdown page whose fenced sh blocks are run one after another
// in one bash with errexit. What a reader sees is what runs; only the info
// string behind the language and HTML comments, which aren't shown, say how:
//
//	```sh                         run, and it must succeed
//	```sh background=NAME         run in a terminal of its own; until=TEXT
//	                              waits for that text in its output
//	```sh skip                    not run, only checked like other pages
//	```text                       each line must be in the output of the block
//	                              before; … stands for anything
//	```text of=NAME               in the output of that background command
//	<!-- doctest: stop NAME -->   Ctrl-C in that terminal
//
// Guides run in a network namespace of their own, where the machine allows it,
// so that the ports that the pages use are free.
package doctest
