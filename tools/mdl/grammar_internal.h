#pragma once
// The grammar of MDL, as rules of PEGTL, and what each rule that may fail had expected.
//
// Facts of the language: the paper (syntax.h), and the tokens and productions of Paradyn's own parser
// (paradyn/src/met/metScanner.l and metParser.y in the history of Dyninst).

#include <tao/pegtl.hpp>

namespace citcat::mdl::grammar {

// NOLINTBEGIN: PEGTL's rules are types without members.
using namespace tao::pegtl;

// ---------------------------------------------------------------------------------------------
// Tokens

struct comment : seq<string<'/', '/'>, until<eolf>> {};
struct separator : star<sor<space, comment>> {};
template <class Text>
struct word : seq<Text, not_at<identifier_other>> {};
template <class Text>
struct key : seq<word<Text>, separator> {};
template <char C>
struct sign : seq<one<C>, separator> {};

struct name_text : seq<opt<one<'$'>>, identifier> {};
struct name : seq<name_text, separator> {};
struct decimal : plus<digit> {};
struct hexadecimal : seq<one<'0'>, one<'x', 'X'>, plus<xdigit>> {};
struct number_text : seq<sor<hexadecimal, decimal>, not_at<identifier_other>> {};
struct number : seq<number_text, separator> {};
struct literal_text : star<not_one<'"', '\n'>> {};
struct literal_end : one<'"'> {};
struct literal : if_must<one<'"'>, literal_text, literal_end, separator> {};

struct semicolon : sign<';'> {};
struct open_brace : sign<'{'> {};
struct close_brace : sign<'}'> {};
struct bracket : seq<one<'('>, not_at<one<'*'>>, separator> {};
struct open_bracket : bracket {};
struct close_bracket : sign<')'> {};
struct close_index : sign<']'> {};
struct comma : sign<','> {};

// ---------------------------------------------------------------------------------------------
// Expressions

struct expression;
struct wanted_expression : seq<expression> {};

struct assign_sign
    : sor<seq<one<'='>, not_at<one<'='>>>, string<'+', '='>, string<'-', '='>> {};
struct assignment : seq<name, assign_sign, separator, must<wanted_expression>> {};

struct arguments : opt<seq<expression, star<comma, must<wanted_expression>>>> {};
struct call : seq<name, if_must<bracket, arguments, close_bracket>> {};
struct element : seq<name, if_must<sign<'['>, wanted_expression, close_index>> {};
struct variable : seq<name> {};
struct group : if_must<bracket, wanted_expression, close_bracket> {};
struct primary : sor<number, literal, call, element, variable, group> {};
struct field_name : seq<name> {};
struct field : if_must<sign<'.'>, field_name> {};
struct increment : string<'+', '+'> {};
struct postfix : seq<primary, star<sor<field, seq<increment, separator>>>> {};
struct prefix_sign : sor<seq<one<'-'>, not_at<one<'='>>>, seq<one<'&'>, not_at<one<'&'>>>> {};
struct operand : seq<postfix> {};
struct prefix : seq<prefix_sign, separator, star<prefix_sign, separator>, must<operand>> {};
struct unary : sor<prefix, postfix> {};

struct product_sign : sor<seq<one<'*'>, not_at<one<')'>>>, seq<one<'/'>, not_at<one<'/'>>>> {};
struct sum_sign : seq<one<'+', '-'>, not_at<one<'=', '+'>>> {};
struct compare_sign : sor<string<'=', '='>, string<'!', '='>, string<'<', '='>,
                          string<'>', '='>, one<'<'>, one<'>'>> {};
struct and_sign : string<'&', '&'> {};
struct or_sign : string<'|', '|'> {};

template <class Part>
struct right_of : seq<Part> {};
template <class Part, class Sign>
struct chain : seq<Part, star<Sign, separator, must<right_of<Part>>>> {};
struct product : chain<unary, product_sign> {};
struct sum : chain<product, sum_sign> {};
struct comparison : chain<sum, compare_sign> {};
struct conjunction : chain<comparison, and_sign> {};
struct disjunction : chain<conjunction, or_sign> {};
struct expression : sor<assignment, disjunction> {};

// ---------------------------------------------------------------------------------------------
// Statements

struct code_open : seq<string<'(', '*'>, separator> {};
struct code_close : seq<string<'*', ')'>, separator> {};
struct code_condition : if_must<key<TAO_PEGTL_STRING("if")>, open_bracket, wanted_expression,
                                close_bracket> {};
struct code_line : seq<opt<code_condition>, expression, must<semicolon>> {};
struct position_word : sor<word<TAO_PEGTL_STRING("append")>, word<TAO_PEGTL_STRING("prepend")>> {};
struct where_word : sor<word<TAO_PEGTL_STRING("preInsn")>, word<TAO_PEGTL_STRING("postInsn")>> {};
struct where : seq<where_word, separator> {};
struct points : seq<expression> {};
struct constrained_word : word<TAO_PEGTL_STRING("constrained")> {};
struct request : if_must<seq<position_word, separator>, where, points,
                         opt<constrained_word, separator>, code_open, star<code_line>,
                         code_close> {};

struct statement;
struct wanted_statement : seq<statement> {};
struct close_statements : sign<'}'> {};
struct sequence : if_must<sign<'{'>, star<statement>, close_statements> {};
struct in_key : key<TAO_PEGTL_STRING("in")> {};
struct loop_variable : seq<name> {};
struct foreach : if_must<key<TAO_PEGTL_STRING("foreach")>, loop_variable, in_key,
                         wanted_expression, wanted_statement> {};
struct condition : if_must<key<TAO_PEGTL_STRING("if")>, open_bracket, wanted_expression,
                           close_bracket, wanted_statement> {};
struct statement : sor<sequence, foreach, condition, request> {};
struct body : seq<open_brace, star<statement>, close_statements> {};

// ---------------------------------------------------------------------------------------------
// Definitions

struct is_key : key<TAO_PEGTL_STRING("is")> {};
struct path_star : one<'*'> {};
struct path_part : sor<name, seq<path_star, separator>> {};
struct path : plus<if_must<seq<one<'/'>, not_at<one<'/'>>, separator>, path_part>> {};
struct wanted_path : seq<path> {};

struct base_word : sor<word<TAO_PEGTL_STRING("counter")>, word<TAO_PEGTL_STRING("processTimer")>,
                       word<TAO_PEGTL_STRING("wallTimer")>, word<TAO_PEGTL_STRING("void")>> {};
struct base_kind : seq<base_word, separator> {};
struct flag_word : sor<word<istring<'t', 'r', 'u', 'e'>>, word<istring<'f', 'a', 'l', 's', 'e'>>> {};
struct flag : seq<flag_word, separator> {};
struct wanted_name : seq<name> {};
struct wanted_text : seq<literal> {};

struct flavor : if_must<key<TAO_PEGTL_STRING("flavor")>, opt<sign<'='>>, open_brace, wanted_name,
                        star<comma, must<wanted_name>>, close_brace, semicolon> {};

struct metric_name : if_must<key<TAO_PEGTL_STRING("name")>, wanted_text, semicolon> {};
struct metric_units : if_must<key<TAO_PEGTL_STRING("units")>, wanted_name, semicolon> {};
struct aggregate_word : sor<word<TAO_PEGTL_STRING("sum")>, word<TAO_PEGTL_STRING("avg")>,
                            word<TAO_PEGTL_STRING("min")>, word<TAO_PEGTL_STRING("max")>> {};
struct aggregate : seq<aggregate_word, separator> {};
struct metric_aggregate
    : if_must<key<TAO_PEGTL_STRING("aggregateOperator")>, aggregate, semicolon> {};
struct style_word : sor<word<TAO_PEGTL_STRING("EventCounter")>,
                        word<TAO_PEGTL_STRING("SampledFunction")>> {};
struct style : seq<style_word, separator> {};
struct metric_style : if_must<key<TAO_PEGTL_STRING("style")>, style, semicolon> {};
struct mode_word : sor<word<TAO_PEGTL_STRING("developer")>, word<TAO_PEGTL_STRING("normal")>> {};
struct mode : seq<mode_word, separator> {};
struct metric_mode : if_must<key<TAO_PEGTL_STRING("mode")>, mode, semicolon> {};
struct units_type_word : sor<word<TAO_PEGTL_STRING("normalized")>,
                             word<TAO_PEGTL_STRING("unnormalized")>,
                             word<TAO_PEGTL_STRING("sampled")>> {};
struct units_type : seq<units_type_word, separator> {};
struct metric_units_type : if_must<key<TAO_PEGTL_STRING("unitsType")>, units_type, semicolon> {};
struct metric_temporary : if_must<key<TAO_PEGTL_STRING("counter")>, wanted_name, semicolon> {};
struct metric_base : if_must<key<TAO_PEGTL_STRING("base")>, is_key, base_kind, body> {};
struct replace_key : key<TAO_PEGTL_STRING("replace")> {};
struct own_constraint : if_must<path, is_key, replace_key, base_kind, body> {};
struct constraint_tail : sor<semicolon, own_constraint> {};
struct metric_constraint
    : if_must<key<TAO_PEGTL_STRING("constraint")>, wanted_name, constraint_tail> {};
struct metric_field : sor<metric_name, metric_units, metric_aggregate, metric_style, flavor,
                          metric_mode, metric_units_type, metric_temporary, metric_constraint,
                          metric_base> {};
struct metric_end : sign<'}'> {};
struct metric : if_must<key<TAO_PEGTL_STRING("metric")>, wanted_name, open_brace,
                        star<metric_field>, metric_end> {};

struct default_word : word<TAO_PEGTL_STRING("default")> {};
struct default_constraint : if_must<seq<default_word, separator>, semicolon> {};
struct counter_constraint : if_must<key<TAO_PEGTL_STRING("counter")>, body> {};
struct constraint_kind : sor<default_constraint, counter_constraint> {};
struct constraint : if_must<key<TAO_PEGTL_STRING("constraint")>, wanted_name, wanted_path, is_key,
                            constraint_kind> {};

struct list_word : sor<word<TAO_PEGTL_STRING("procedure")>, word<TAO_PEGTL_STRING("module")>,
                       word<TAO_PEGTL_STRING("string")>, word<TAO_PEGTL_STRING("int")>,
                       word<TAO_PEGTL_STRING("float")>> {};
struct list_kind : seq<list_word, separator> {};
struct list_items : if_must<key<TAO_PEGTL_STRING("items")>, open_brace, wanted_text,
                            star<comma, must<wanted_text>>, close_brace, semicolon> {};
struct list_library : if_must<key<TAO_PEGTL_STRING("library")>, flag, semicolon> {};
struct list_field : sor<list_items, list_library, flavor> {};
struct list_end : sign<'}'> {};
struct resource_list : if_must<key<TAO_PEGTL_STRING("resourceList")>, wanted_name, is_key,
                               list_kind, open_brace, star<list_field>, list_end> {};

struct definition : sor<metric, constraint, resource_list> {};
struct end_of_text : eof {};
struct file : seq<separator, star<definition>, must<end_of_text>> {};

// ---------------------------------------------------------------------------------------------
// Messages

struct Expected {
  /// Of rules that cannot fail, such as star<>, nobody is told.
  template <class Rule>
  static constexpr const char* message = "what the language has here";
  /// A rule may fail where another one is tried in its place: only must<> makes an error of it.
  template <class Rule>
  static constexpr bool raise_on_failure = false;
};

#define CITCAT_MDL_EXPECTED(RULE, TEXT) \
  template <>                           \
  inline constexpr const char* Expected::message<RULE> = TEXT
CITCAT_MDL_EXPECTED(literal_text, "a text");
CITCAT_MDL_EXPECTED(literal_end, "the quotation mark that ends the text, on the same line");
CITCAT_MDL_EXPECTED(semicolon, "a semicolon");
CITCAT_MDL_EXPECTED(open_brace, "{");
CITCAT_MDL_EXPECTED(close_brace, "}");
CITCAT_MDL_EXPECTED(open_bracket, "(");
CITCAT_MDL_EXPECTED(close_bracket, ")");
CITCAT_MDL_EXPECTED(close_index, "]");
CITCAT_MDL_EXPECTED(wanted_expression, "an expression");
CITCAT_MDL_EXPECTED(field_name, "the name of a field");
CITCAT_MDL_EXPECTED(operand, "a value");
CITCAT_MDL_EXPECTED(right_of<unary>, "a value");
CITCAT_MDL_EXPECTED(right_of<product>, "a value");
CITCAT_MDL_EXPECTED(right_of<sum>, "a value");
CITCAT_MDL_EXPECTED(right_of<comparison>, "a value");
CITCAT_MDL_EXPECTED(right_of<conjunction>, "a value");
CITCAT_MDL_EXPECTED(where, "preInsn or postInsn");
CITCAT_MDL_EXPECTED(points, "points such as func.entry");
CITCAT_MDL_EXPECTED(code_open, "constrained, or (* and code");
CITCAT_MDL_EXPECTED(code_close, "code, or *) behind it");
CITCAT_MDL_EXPECTED(wanted_statement, "foreach, if, append, prepend or {");
CITCAT_MDL_EXPECTED(close_statements, "foreach, if, append, prepend, { or }");
CITCAT_MDL_EXPECTED(body, "{");
CITCAT_MDL_EXPECTED(in_key, "in");
CITCAT_MDL_EXPECTED(loop_variable, "the name of a variable");
CITCAT_MDL_EXPECTED(is_key, "is");
CITCAT_MDL_EXPECTED(path_part, "a name or *");
CITCAT_MDL_EXPECTED(wanted_path, "a path such as /Code/*");
CITCAT_MDL_EXPECTED(base_kind, "counter, processTimer, wallTimer or void");
CITCAT_MDL_EXPECTED(flag, "true or false");
CITCAT_MDL_EXPECTED(wanted_name, "a name");
CITCAT_MDL_EXPECTED(wanted_text, "a text in quotation marks");
CITCAT_MDL_EXPECTED(aggregate, "sum, avg, min or max");
CITCAT_MDL_EXPECTED(style, "EventCounter or SampledFunction");
CITCAT_MDL_EXPECTED(mode, "developer or normal");
CITCAT_MDL_EXPECTED(units_type, "normalized, unnormalized or sampled");
CITCAT_MDL_EXPECTED(replace_key, "replace");
CITCAT_MDL_EXPECTED(constraint_tail, "a semicolon, or a path such as /Code/*");
CITCAT_MDL_EXPECTED(metric_end,
                    "name, units, aggregateOperator, style, flavor, mode, unitsType, counter, "
                    "constraint, base or }");
CITCAT_MDL_EXPECTED(constraint_kind, "counter or default");
CITCAT_MDL_EXPECTED(list_kind, "procedure, module, string, int or float");
CITCAT_MDL_EXPECTED(list_end, "items, flavor, library or }");
CITCAT_MDL_EXPECTED(end_of_text, "metric, constraint or resourceList");
#undef CITCAT_MDL_EXPECTED
// NOLINTEND

}  // namespace citcat::mdl::grammar
